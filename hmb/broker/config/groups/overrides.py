"""Declares the settings of a single consumer group (KIP-848), share group (KIP-932) or streams group (KIP-1071).

A group's setting overrides a default of the broker. For example, the group's `consumer.session.timeout.ms` overrides
the broker's `group.consumer.session.timeout.ms`.

The broker also has settings that limit the values of most group settings. For example, a group's
`consumer.session.timeout.ms` must be between the broker's `group.consumer.min.session.timeout.ms` and
`group.consumer.max.session.timeout.ms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hmb.broker.config.broker import BROKER_CONFIGS, BrokerConfig
from hmb.broker.config.dynamic import DynamicConfig, Synonym
from hmb.broker.config.entries import ConfigDescription
from hmb.broker.config.groups.share import GROUP_ONLY, check_offset_reset
from hmb.broker.config.keys import ConfigError, ConfigKey, nearest
from hmb.broker.context import BrokerContext
from hmb.broker.errors import outcome_of
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.consumer.settings import ConsumerGroupSettings, MigrationPolicy
from hmb.coordinator.share.settings import ShareGroupSettings
from hmb.protocol.enums import ISOLATION_LEVELS, ConfigSource, IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from hmb.coordinator.streams.settings import StreamsGroupSettings

NAMES = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.assignment.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    "streams.assignment.interval.ms",
    "streams.num.standby.replicas",
    "streams.initial.rebalance.delay.ms",
)
GROUP_KEYS = {
    **{name: BROKER_CONFIGS[f"group.{name}"]._replace(name=name) for name in NAMES},
    **GROUP_ONLY,
}


def classic_group_settings(config: BrokerConfig) -> GroupSettings:
    """Return the settings that apply to every classic group."""
    return GroupSettings(
        min_session_timeout=config.classic.min_session_timeout,
        max_session_timeout=config.classic.max_session_timeout,
        initial_delay=config.classic.initial_delay,
        max_size=config.classic.max_size,
    )


def consumer_group_settings(broker: DynamicConfig, group: str) -> ConsumerGroupSettings:
    """Return the current settings of a consumer group. The coordinator calls this function at each heartbeat."""
    config, own = broker.current, broker.altered_of_group(group)
    return ConsumerGroupSettings(
        session_timeout=int(own.get("consumer.session.timeout.ms", config.consumer.session_timeout)),
        heartbeat_interval=int(own.get("consumer.heartbeat.interval.ms", config.consumer.heartbeat_interval)),
        assignment_interval=int(own.get("consumer.assignment.interval.ms", config.consumer.assignment_interval)),
        max_size=config.consumer.max_size,
        migration_policy=MigrationPolicy(config.consumer.migration_policy),
    )


def share_group_settings(broker: DynamicConfig, group: str) -> ShareGroupSettings:
    """Return the current settings of a share group. The coordinator calls this function at each request."""
    config, own = broker.current, broker.altered_of_group(group)
    only = {name: own.get(name, key.default_text or "") for name, key in GROUP_ONLY.items()}
    return ShareGroupSettings(
        session_timeout=int(own.get("share.session.timeout.ms", config.share.session_timeout)),
        heartbeat_interval=int(own.get("share.heartbeat.interval.ms", config.share.heartbeat_interval)),
        assignment_interval=int(own.get("share.assignment.interval.ms", config.share.assignment_interval)),
        max_size=config.share.max_size,
        lock_duration=int(own.get("share.record.lock.duration.ms", config.share.lock_duration)),
        delivery_limit=int(own.get("share.delivery.count.limit", config.share.delivery_limit)),
        max_locks=int(own.get("share.partition.max.record.locks", config.share.max_locks)),
        offset_reset=only["share.auto.offset.reset"],
        reads_committed=ISOLATION_LEVELS[only["share.isolation.level"]] is IsolationLevel.READ_COMMITTED,
        allows_renew=only["share.renew.acknowledge.enable"] == "true",
    )


def streams_group_settings(broker: DynamicConfig, group: str) -> StreamsGroupSettings:
    """Return the current settings of a streams group. The coordinator calls this function at each heartbeat."""
    from hmb.coordinator.streams.settings import StreamsGroupSettings  # Only a broker with streams groups needs it.

    config, own = broker.current, broker.altered_of_group(group)
    return StreamsGroupSettings(
        session_timeout=int(own.get("streams.session.timeout.ms", config.streams.session_timeout)),
        heartbeat_interval=int(own.get("streams.heartbeat.interval.ms", config.streams.heartbeat_interval)),
        assignment_interval=int(own.get("streams.assignment.interval.ms", config.streams.assignment_interval)),
        max_size=config.streams.max_size,
        standby_replicas=int(own.get("streams.num.standby.replicas", config.streams.standby_replicas)),
        initial_delay=int(own.get("streams.initial.rebalance.delay.ms", config.streams.initial_delay)),
    )


class GroupResource:
    """The settings of one group. Clients can set these settings before the group exists."""

    def __init__(self, name: str, broker: DynamicConfig) -> None:
        if not name:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "the name of the group is empty; alter the broker's group.* settings to change the defaults",
            )
        self._name = name
        self._broker = broker

    @property
    def altered(self) -> Mapping[str, str]:
        return self._broker.altered_of_group(self._name)

    def entries(self) -> Iterator[ConfigDescription]:
        for name, key in sorted(GROUP_KEYS.items()):
            if name in GROUP_ONLY:
                synonyms = [Synonym(name, key.default_text, ConfigSource.DEFAULT_CONFIG)]
            else:
                synonyms = self._broker.synonyms(f"group.{name}")
            if (own := self.altered.get(name)) is not None:
                synonyms.insert(0, Synonym(name, own, ConfigSource.DYNAMIC_GROUP_CONFIG))
            yield ConfigDescription(key, synonyms[0].value, synonyms[0].source, synonyms)

    def check(self, configs: Mapping[str, str]) -> None:
        """Raise INVALID_CONFIG if one of the settings is unknown for a group or has an invalid value."""
        self._normal(configs)

    def _normal(self, configs: Mapping[str, str]) -> dict[str, str]:
        try:
            if "share.auto.offset.reset" in configs:
                check_offset_reset(configs["share.auto.offset.reset"])
            return {name: self._key(name).normal(text) for name, text in configs.items()}
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error

    @staticmethod
    def alter_all(
        changes: Sequence[tuple[GroupResource, Mapping[str, str]]], broker: BrokerContext
    ) -> list[KafkaError | None]:
        configs = {resource._name: resource._normal(configs) for resource, configs in changes}
        return [outcome_of(partial(broker.configs.alter_groups, configs))] * len(changes)

    def _key(self, name: str) -> ConfigKey:
        """Return the declaration of a group's setting, with its current minimum and maximum.

        Raises ConfigError for an unknown name.
        """
        if name not in GROUP_KEYS:
            known = ", ".join(GROUP_KEYS)
            raise ConfigError(f"unknown group config {name!r}{nearest(name, GROUP_KEYS)}; known: {known}")
        key = GROUP_KEYS[name]
        if name in GROUP_ONLY:
            return key
        kind, _, rest = name.partition(".")
        least = self._bound(f"group.{kind}.min.{rest}", key.minimum)
        most = self._bound(f"group.{kind}.max.{rest.removeprefix('num.')}", key.maximum)
        return key._replace(minimum=least, maximum=most)

    def _bound(self, broker_name: str, otherwise: float) -> float:
        """Return the value of the broker's setting `broker_name`. If no such setting exists, return `otherwise`."""
        return int(self._broker.value(broker_name) or 0) if broker_name in BROKER_CONFIGS else otherwise
