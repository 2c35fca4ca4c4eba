"""What has settings: topics, brokers, the broker's loggers, groups.

DescribeConfigs, AlterConfigs and IncrementalAlterConfigs name a resource by its type and its name; `find` gives the
object that answers for it.  All kinds answer the same questions, what was set (`altered`) and what there is to tell
(`entries`), and take the same order: put these in the place of those (`alter`).  `alter_each` is what both of the
alter APIs do with a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.entries import ConfigEntry, broker_entries, default_broker_entries, topic_entries
from hmb.broker.config.group_configs import GroupResource
from hmb.broker.config.loggers import Loggers
from hmb.broker.context import BrokerContext
from hmb.broker.errors import Answer, answering
from hmb.broker.topics.registry import Topics
from hmb.protocol.enums import ALL_BROKERS, ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, check_topic_name


class Resource(Protocol):
    """Something that has settings."""

    @property
    def altered(self) -> Mapping[str, str]:
        """What was set for it."""

    def entries(self) -> Iterable[ConfigEntry]: ...

    def alter(self, configs: Mapping[str, str], *, validate_only: bool) -> None:
        """Put these in the place of all that was set.  Raises KafkaError, and then nothing has changed."""


def find(type: int, name: str, broker: BrokerContext) -> Resource:
    """What answers for a resource.  Raises INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION."""
    match type:
        case ResourceType.TOPIC:
            check_topic_name(name)
            return _TopicResource(name, broker.topics, broker.configs)
        case ResourceType.BROKER:
            _check_broker(name, (ALL_BROKERS, broker.configs.name))
            return _BrokerResource(name, broker.configs)
        case ResourceType.BROKER_LOGGER:
            _check_broker(name, (broker.configs.name,))
            return Loggers()
        case ResourceType.GROUP:
            return GroupResource(name, broker.configs)
    names = ", ".join(kind.name for kind in ResourceType if kind is not ResourceType.CLIENT_METRICS)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {type}: only {names} have settings")


class Named(Protocol):
    """A resource in a request."""

    resource_type: int
    resource_name: str


NamedT = TypeVar("NamedT", bound=Named)
AnswerT = TypeVar("AnswerT", bound=Answer)


def alter_each(
    wanted: Iterable[NamedT], new_answer: Callable[..., AnswerT], alter_one: Callable[[NamedT], None]
) -> list[AnswerT]:
    """An answer for each resource, with the error that altering it raised.  One that is named twice is not altered."""
    resources = list(wanted)
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    answers: list[AnswerT] = []
    for each in resources:
        name = {"resource_type": each.resource_type, "resource_name": each.resource_name}
        answers.append(answer := new_answer(**name, error_message=None))
        with answering(answer):
            if times[each.resource_type, each.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "this resource is named twice")
            alter_one(each)
    return answers


def alter(
    named: Named, change: Callable[[Resource], Mapping[str, str]], broker: BrokerContext, *, validate_only: bool
) -> None:
    """Put what `change` makes of a resource's settings in their place.  Raises as `find` and `Resource.alter` do."""
    if named.resource_type == ResourceType.TOPIC and not named.resource_name:  # in `find` it is another error
        raise KafkaError(ErrorCode.INVALID_REQUEST, "all topics have no settings of their own; a broker has")
    resource = find(named.resource_type, named.resource_name, broker)
    with broker.configs.alterations:
        resource.alter(change(resource), validate_only=validate_only)


def _check_broker(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"broker {name!r} is not here, only {known[-1]!r}")


class _TopicResource:
    def __init__(self, name: str, topics: Topics, broker: DynamicConfig) -> None:
        self._topic = topics.find(name, NO_TOPIC_ID)
        self._topics = topics
        self._broker = broker

    @property
    def altered(self) -> Mapping[str, str]:
        return self._topic.configs

    def entries(self) -> Iterable[ConfigEntry]:
        return topic_entries(self._topic.configs, self._broker)

    def alter(self, configs: Mapping[str, str], *, validate_only: bool) -> None:
        self._topics.alter_configs(self._topic, configs, validate_only=validate_only)


class _BrokerResource:
    def __init__(self, name: str, broker: DynamicConfig) -> None:
        self._name = name
        self._broker = broker

    @property
    def altered(self) -> Mapping[str, str]:
        return self._broker.altered(self._name)

    def entries(self) -> Iterable[ConfigEntry]:
        return default_broker_entries(self._broker) if self._name == ALL_BROKERS else broker_entries(self._broker)

    def alter(self, configs: Mapping[str, str], *, validate_only: bool) -> None:
        self._broker.alter(self._name, configs, validate_only=validate_only)
