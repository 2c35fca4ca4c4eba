"""The settings of client metrics (KIP-714). Each subscription has settings, which select clients and metrics.

The folder broker/telemetry explains the settings `metrics`, `interval.ms` and `match`. As in Kafka, the broker
stores these settings even if its client telemetry is switched off. The settings then have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from hmb.broker.config.dynamic import DynamicConfig, Synonym
from hmb.broker.config.entries import ConfigDescription
from hmb.broker.config.keys import ConfigError, nearest
from hmb.broker.context import BrokerContext
from hmb.broker.errors import outcome_of
from hmb.broker.telemetry.subscriptions import INTERVALS, KEYS, subscription_of
from hmb.protocol.enums import ConfigSource
from hmb.protocol.errors import ErrorCode, KafkaError


class ClientMetricsResource:
    """The settings of one subscription of client metrics."""

    def __init__(self, name: str, broker: DynamicConfig) -> None:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of the client-metrics subscription is empty")
        self._name = name
        self._broker = broker

    @property
    def altered(self) -> Mapping[str, str]:
        return self._broker.client_metrics.get(self._name, {})

    def entries(self) -> Iterator[ConfigDescription]:
        for name, key in sorted(KEYS.items()):
            own = self.altered.get(name)
            if own is None:
                yield ConfigDescription(key, key.default_text, ConfigSource.DEFAULT_CONFIG)
            else:
                source = ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
                yield ConfigDescription(key, own, source, [Synonym(name, own, source)])

    def check(self, configs: Mapping[str, str]) -> None:
        """Raise KafkaError if a subscription of client metrics cannot have the settings `configs`.

        As in Kafka, the error code is INVALID_REQUEST if a setting is unknown, or if `interval.ms` is outside its
        limits. For any other invalid value, the error code is INVALID_CONFIG.
        """
        if unknown := [name for name in configs if name not in KEYS]:
            why = f"unknown client metrics configuration {unknown[0]!r}{nearest(unknown[0], KEYS)}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        try:
            interval_ms = subscription_of(configs).interval_ms
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        if interval_ms not in INTERVALS:
            why = f"interval.ms={interval_ms}: the value must be at least {INTERVALS[0]} and at most {INTERVALS[-1]}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)

    @staticmethod
    def alter_all(
        changes: Sequence[tuple[ClientMetricsResource, Mapping[str, str]]], broker: BrokerContext
    ) -> list[KafkaError | None]:
        configs = {resource._name: configs for resource, configs in changes}
        return [outcome_of(partial(broker.configs.alter_client_metrics, configs))] * len(changes)
