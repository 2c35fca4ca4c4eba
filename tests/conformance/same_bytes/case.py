"""Test cases and comparisons. A test case lists requests. A comparison sends these requests in one API version.

A request is a message object, which can contain placeholders. Before a comparison sends a request, the comparison
replaces each placeholder with a value:

- `<name>` in a text becomes the name of the comparison. A topic `<name>` is therefore used by only one comparison.
- `id_of("events")` becomes the id that the broker has assigned to the topic `events`.
- `captured("member")` becomes a value from an earlier response of the same broker. An earlier step of the comparison
  has stored this value under the name `member`.
- `made(f)` becomes the result of the function `f`, which gets a dict of all captured values. For example, `f` encodes
  records with a captured producer id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.fields import version_range
from hmb.protocol.messages import api_name, request_class
from hmb.protocol.schema import Request

# The first version of each API that Kafka 4 supports. Kafka 4 has dropped older versions. A comparison of ApiVersions
# checks these numbers.
FIRST_VERSIONS: Mapping[ApiKey, int] = {
    ApiKey.PRODUCE: 3,
    ApiKey.FETCH: 4,
    ApiKey.LIST_OFFSETS: 1,
    ApiKey.OFFSET_COMMIT: 2,
    ApiKey.OFFSET_FETCH: 1,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
}


SUPER_USER = "super user"  # the name of the connection that always belongs to a super user
# The test waits at most ENOUGH seconds for a response, or FOREVER seconds if Kafka never responds to the request.
ENOUGH, FOREVER = 5.0, 2.0
NOBODYS_ID = UUID(int=0x1234567890)  # the id of a topic that does not exist


def shared_versions(api_key: int) -> range:
    """Return the versions of an API that both brokers support."""
    ours = request_class(api_key).versions
    return range(max(FIRST_VERSIONS.get(ApiKey(api_key), 0), ours[0]), ours[-1] + 1)


@dataclass(frozen=True)
class Placeholder:
    """A placeholder in a request. Each broker gets its own value in this place."""

    name: str


class TopicId(Placeholder):
    pass


class Captured(Placeholder):
    pass


@dataclass(frozen=True)
class Made:
    """A placeholder in a request. Its value is computed from values in earlier responses."""

    make: Callable[[Mapping[str, Any]], object]


def made(make: Callable[[Mapping[str, Any]], object]) -> Any:
    return Made(make)


def id_of(topic: str) -> Any:
    return TopicId(topic)


def captured(name: str) -> Any:
    return Captured(name)


@dataclass(frozen=True)
class Raw:
    """A request in encoded form, because no message object can express the request.

    The test decodes the response in the version `answer_version`.
    """

    frame: bytes
    api_key: int
    answer_version: int


Message = Request | Raw
Capture = Callable[[Any], object]


@dataclass(frozen=True)
class Step:
    """One request and its response."""

    message: Message | Callable[[int], Message]
    capture: Mapping[str, Capture] = field(default_factory=dict)
    connection: str = "first"
    answered: bool = True  # False if the broker does not respond, for example to a Produce request with acks=0
    later: bool = False  # whether to read the response after all other steps of the comparison
    until: Callable[[Any], bool] | None = None  # Repeat the request until this function accepts the response.
    seconds: float = ENOUGH  # the longest wait for the response
    # If True, repeat the request while the responses differ, because a change reaches Kafka's broker only after a
    # moment.
    settles: bool = False


@dataclass(frozen=True)
class Topic:
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A test case: a list of requests, which the test sends in order.

    The field `versions` selects versions of one API. The test sends the list once for each of these versions. The API
    is `api_key`, or the API of the last request if `api_key` is None.
    """

    name: str
    steps: Sequence[Step]
    versions: str = "0+"
    topics: Mapping[str, Topic] = field(default_factory=dict)
    may_differ: Sequence[str] = ()  # fields that must have a value in both responses, but may have different values
    ignored: Sequence[str] = ()  # fields that are not compared
    api_key: ApiKey | None = None
    user: str | None = None  # the user who sends the requests, if the brokers check ACLs

    def key(self) -> int:
        return key_of(self.steps[-1].message) if self.api_key is None else self.api_key


def key_of(message: Message | Callable[[int], Message]) -> int:
    made = message if isinstance(message, Request | Raw) else message(0)
    return made.api_key


def case(name: str, *steps: Step | Message | Callable[[int], Message], **options: Any) -> Case:
    return Case(name, [step if isinstance(step, Step) else Step(step) for step in steps], **options)


@dataclass(frozen=True)
class Comparison:
    """One test case in one version of its API."""

    case: Case
    version: int

    @property
    def name(self) -> str:
        return f"{api_name(self.case.key())}/{self.case.name}/v{self.version}"

    @property
    def unique_name(self) -> str:
        """Return the text that replaces `<name>`. The text is a valid topic name."""
        return re.sub(r"[^a-zA-Z0-9-]+", "-", self.name)

    @property
    def topics(self) -> dict[str, Topic]:
        return {self.fill(name): topic for name, topic in self.case.topics.items()}

    @property
    def api_keys(self) -> set[int]:
        return {key_of(step.message) for step in self.case.steps}

    def fill(self, text: str) -> str:
        return text.replace("<name>", self.unique_name)

    def message(self, step: Step) -> tuple[Message, int]:
        """Return the message of a step, and the version in which the test sends this message.

        A request of the compared API is sent in the version of the comparison. A request of another API is sent in the
        newest version that both brokers support.
        """
        if isinstance(step.message, Raw):
            return step.message, step.message.answer_version
        api_key = key_of(step.message)
        version = self.version if api_key == self.case.key() else shared_versions(api_key)[-1]
        return step.message if isinstance(step.message, Request) else step.message(version), version


def comparisons_of(case: Case) -> Iterator[Comparison]:
    wanted = [version_range(part) for part in case.versions.split(",")]
    for version in shared_versions(case.key()):
        if any(version in part for part in wanted):
            yield Comparison(case, version)
