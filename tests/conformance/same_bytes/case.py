"""A row of the table: what both brokers are asked, in which version, after which preparations.

A request is a message object; these stand in it for what is only known when the row runs:

- `<row>` inside a text is the row's own name, so that topics and groups of two rows never meet;
- `id_of("events")` is the id that each broker gave that topic;
- `captured("member")` is what an earlier step of the row found in this broker's answer;
- `made(f)` is what f makes of all that was captured: records with a producer's id in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages import api_name, request_class
from hmb.protocol.schema import Request, version_range

# Kafka 4 has dropped the versions before these (the rows of ApiVersions compare them with what it says).
FIRST_VERSIONS: Mapping[ApiKey, int] = {
    ApiKey.PRODUCE: 3,
    ApiKey.FETCH: 4,
    ApiKey.LIST_OFFSETS: 1,
    ApiKey.OFFSET_COMMIT: 2,
    ApiKey.OFFSET_FETCH: 1,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
}


ENOUGH, FOREVER = 5.0, 2.0  # seconds to wait for an answer, and for one that Kafka never gives
NOBODYS_ID = UUID(int=0x1234567890)  # of a topic that is not there


def shared_versions(api_key: int) -> range:
    """The versions that both brokers speak."""
    ours = request_class(api_key).versions
    return range(max(FIRST_VERSIONS.get(ApiKey(api_key), 0), ours[0]), ours[-1] + 1)


@dataclass(frozen=True)
class Placeholder:
    """Stands in a request for a value that each broker has its own of."""

    name: str


class TopicId(Placeholder):
    pass


class Captured(Placeholder):
    pass


@dataclass(frozen=True)
class Made:
    """Stands in a request for what is made of captured values."""

    make: Callable[[Mapping[str, Any]], object]


def made(make: Callable[[Mapping[str, Any]], object]) -> Any:
    return Made(make)


def id_of(topic: str) -> Any:
    return TopicId(topic)


def captured(name: str) -> Any:
    return Captured(name)


@dataclass(frozen=True)
class Raw:
    """A request that no message object can say: its frame, and how to read an answer if one comes."""

    frame: bytes
    api_key: int
    answer_version: int


Message = Request | Raw
Capture = Callable[[Any], object]


@dataclass(frozen=True)
class Step:
    """One request and its answer."""

    message: Message | Callable[[int], Message]
    capture: Mapping[str, Capture] = field(default_factory=dict)
    connection: str = "first"
    answered: bool = True  # not: acks=0; the next answer on the connection is that to the next request
    later: bool = False  # read the answer when the row has no more steps
    until: Callable[[Any], bool] | None = None  # ask again and again until the answer is like this
    seconds: float = ENOUGH  # to wait for the answer
    settles: bool = False  # ask again while the answers differ: Kafka's broker learns a moment later what was changed


@dataclass(frozen=True)
class Topic:
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A conversation, for some versions of the API that it is about: the one of its last step, if not said."""

    name: str
    steps: Sequence[Step]
    versions: str = "0+"
    topics: Mapping[str, Topic] = field(default_factory=dict)
    may_differ: Sequence[str] = ()  # fields, besides MASKED: that there is something is compared, not what
    ignored: Sequence[str] = ()  # fields that are not compared at all
    api_key: ApiKey | None = None

    def key(self) -> int:
        return key_of(self.steps[-1].message) if self.api_key is None else self.api_key


def key_of(message: Message | Callable[[int], Message]) -> int:
    made = message if isinstance(message, Request | Raw) else message(0)
    return made.api_key


def case(name: str, *steps: Step | Message | Callable[[int], Message], **options: Any) -> Case:
    return Case(name, [step if isinstance(step, Step) else Step(step) for step in steps], **options)


@dataclass(frozen=True)
class Row:
    """A case in one version."""

    case: Case
    version: int

    @property
    def name(self) -> str:
        return f"{api_name(self.case.key())}/{self.case.name}/v{self.version}"

    @property
    def own_name(self) -> str:
        """What `<row>` stands for: a legal name of a topic."""
        return re.sub(r"[^a-zA-Z0-9-]+", "-", self.name)

    @property
    def topics(self) -> dict[str, Topic]:
        return {self.fill(name): topic for name, topic in self.case.topics.items()}

    @property
    def api_keys(self) -> set[int]:
        return {key_of(step.message) for step in self.case.steps}

    def fill(self, text: str) -> str:
        return text.replace("<row>", self.own_name)

    def message(self, step: Step) -> tuple[Message, int]:
        """What to send, and in which version: the row's, or for a step of another API the newest."""
        if isinstance(step.message, Raw):
            return step.message, step.message.answer_version
        api_key = key_of(step.message)
        version = self.version if api_key == self.case.key() else shared_versions(api_key)[-1]
        return step.message if isinstance(step.message, Request) else step.message(version), version


def rows(case: Case) -> Iterator[Row]:
    wanted = [version_range(part) for part in case.versions.split(",")]
    for version in shared_versions(case.key()):
        if any(version in part for part in wanted):
            yield Row(case, version)
