"""The resources that have settings: topics, brokers, the broker's loggers, groups, client metrics.

The requests DescribeConfigs, AlterConfigs and IncrementalAlterConfigs name a resource by its type and its name. `find`
returns an object for this resource. This object has four methods: `altered` returns the settings that clients have set
for the resource. `entries` returns all settings of the resource with their sources. `check` checks new settings.
`alter_all` replaces the old settings with the new settings.

The handlers of AlterConfigs and IncrementalAlterConfigs call `alter_each`. This function first checks the new settings
of each resource in the request. Then `alter_each` alters all resources of one type together. For example, if a request
alters ten topics, the broker writes the file of the topics' settings once, and not ten times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from hmb.broker.config.client_metrics import ClientMetricsResource
from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.entries import ConfigDescription, broker_entries, default_broker_entries, topic_entries
from hmb.broker.config.groups.overrides import GroupResource
from hmb.broker.config.loggers import Loggers
from hmb.broker.context import BrokerContext
from hmb.broker.errors import PartialResponse, error_code_in, outcome_of, put_error
from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.protocol.enums import ALL_BROKERS, ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, check_topic_name


class Resource(Protocol):
    """An object that has settings: a topic, a broker, the broker's loggers, a group, or client metrics."""

    @property
    def altered(self) -> Mapping[str, str]:
        """The settings that clients have set for the resource."""

    def entries(self) -> Iterable[ConfigDescription]: ...

    def check(self, configs: Mapping[str, str]) -> None:
        """Raise KafkaError if the resource cannot have these settings."""

    @staticmethod
    def alter_all(changes: Sequence[tuple[Any, Mapping[str, str]]], broker: BrokerContext) -> list[KafkaError | None]:
        """Replace all settings that clients have set for the resources in `changes`.

        `changes` contains pairs of a resource and its new settings. The result contains, for each pair, None or the
        error that prevented the change.
        """


def find(type: int, name: str, broker: BrokerContext) -> Resource:
    """Return the resource with this type and name.

    Raises INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION.
    """
    match type:
        case ResourceType.TOPIC:
            check_topic_name(name)
            return _TopicResource(broker.topics.find(name, NO_TOPIC_ID), broker.topics, broker.configs)
        case ResourceType.BROKER:
            _check_broker(name, (ALL_BROKERS, broker.configs.name))
            return _BrokerResource(name, broker.configs)
        case ResourceType.BROKER_LOGGER:
            _check_broker(name, (broker.configs.name,))
            return Loggers()
        case ResourceType.GROUP:
            return GroupResource(name, broker.configs)
        case ResourceType.CLIENT_METRICS:
            return ClientMetricsResource(name, broker.configs)
    names = ", ".join(kind.name for kind in ResourceType)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {type}: only {names} have settings")


class Named(Protocol):
    """A part of a request that names one resource by its type and its name."""

    resource_type: int
    resource_name: str


NamedT = TypeVar("NamedT", bound=Named)
ResponseT = TypeVar("ResponseT", bound=PartialResponse)


def alter_each(
    wanted: Sequence[NamedT],
    new_response: Callable[..., ResponseT],
    change: Callable[[NamedT, Resource], Mapping[str, str]],
    broker: BrokerContext,
    *,
    validate_only: bool,
) -> list[ResponseT]:
    """Alter the settings of several resources. For each resource, `change` computes the new settings from the request.

    Return one response for each entry of `wanted`. A response with an error code means that the resource was not
    altered. If the request names a resource twice, this resource gets INVALID_REQUEST. If `validate_only` is true,
    the function checks the new settings, but alters no resource.
    """
    times = Counter((each.resource_type, each.resource_name) for each in wanted)
    responses: list[ResponseT] = []
    accepted: dict[type[Resource], list[tuple[ResponseT, Resource, Mapping[str, str]]]] = {}
    with broker.configs.alterations:
        for each in wanted:
            name = {"resource_type": each.resource_type, "resource_name": each.resource_name}
            responses.append(response := new_response(**name, error_message=None))
            with error_code_in(response):
                if times[each.resource_type, each.resource_name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the request contains this resource twice")
                resource = _find_alterable(each, broker)
                configs = change(each, resource)
                resource.check(configs)
                accepted.setdefault(type(resource), []).append((response, resource, configs))
        for kind, together in accepted.items() if not validate_only else ():
            outcomes = kind.alter_all([(resource, configs) for _, resource, configs in together], broker)
            for (response, _, _), outcome in zip(together, outcomes, strict=True):
                put_error(response, outcome)
    return responses


def _find_alterable(named: Named, broker: BrokerContext) -> Resource:
    # Without this check, the function `find` would raise INVALID_TOPIC_EXCEPTION for an empty topic name.
    if named.resource_type == ResourceType.TOPIC and not named.resource_name:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "the name of the topic is empty; alter the broker's settings to change the defaults",
        )
    return find(named.resource_type, named.resource_name, broker)


def _check_broker(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"unknown broker {name!r}; this broker is {known[-1]!r}")


class _TopicResource:
    def __init__(self, topic: Topic, topics: Topics, broker: DynamicConfig) -> None:
        self._topic = topic
        self._topics = topics
        self._broker = broker

    @property
    def altered(self) -> Mapping[str, str]:
        return self._topic.configs

    def entries(self) -> Iterable[ConfigDescription]:
        return topic_entries(self._topic.configs, self._broker)

    def check(self, configs: Mapping[str, str]) -> None:
        self._topics.check_configs(configs)

    @staticmethod
    def alter_all(
        changes: Sequence[tuple[_TopicResource, Mapping[str, str]]], broker: BrokerContext
    ) -> list[KafkaError | None]:
        return broker.topics.alter_configs([(resource._topic, configs) for resource, configs in changes])


class _BrokerResource:
    def __init__(self, name: str, broker: DynamicConfig) -> None:
        self._name = name
        self._broker = broker

    @property
    def altered(self) -> Mapping[str, str]:
        return self._broker.altered(self._name)

    def entries(self) -> Iterable[ConfigDescription]:
        return default_broker_entries(self._broker) if self._name == ALL_BROKERS else broker_entries(self._broker)

    def check(self, configs: Mapping[str, str]) -> None:
        self._broker.alter(self._name, configs, validate_only=True)

    @staticmethod
    def alter_all(
        changes: Sequence[tuple[_BrokerResource, Mapping[str, str]]], broker: BrokerContext
    ) -> list[KafkaError | None]:
        return [outcome_of(partial(broker.configs.alter, each._name, configs)) for each, configs in changes]
