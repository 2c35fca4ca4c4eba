"""A subscription determines which clients push metrics to the broker, which metrics they push, and how often.

The settings of the subscription "slow-consumers" are, for example:
    metrics=org.apache.kafka.consumer.fetch,org.apache.kafka.consumer.poll
    interval.ms=10000
    match=client_id=billing-.*,client_software_name=librdkafka

The setting `metrics` is a list of prefixes: it selects all metrics whose names begin with one of them. "*" selects all
metrics. The setting `match` is a list of conditions `name=expression`, and a client must fulfil all of them. For
example, `client_id=billing-.*` selects the clients whose whole client id matches the regular expression `billing-.*`
(RE2). A subscription without conditions applies to every client.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from hmb.broker.config.keys import ConfigError, ConfigKey, split_list
from hmb.coordinator.consumer.topic_regex import InvalidRegex, TopicRegex
from hmb.protocol.enums import ConfigType

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000
INTERVALS = range(100, 3_600_001)  # the allowed intervals, in ms
KEYS = {
    key.name: key
    for key in (
        ConfigKey("metrics", ConfigType.LIST, "", "The beginnings of the names of metrics. * stands for all metrics."),
        ConfigKey("interval.ms", ConfigType.INT, DEFAULT_INTERVAL_MS, "The time between two pushes of a client."),
        ConfigKey("match", ConfigType.LIST, "", "The conditions for clients: name=expression."),
    )
}
CONDITIONS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


class TelemetryClient(NamedTuple):
    """The properties by which a subscription selects clients.

    CONDITIONS contains the names of these properties.
    """

    client_instance_id: str
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


@dataclass(frozen=True, slots=True)
class MetricsSubscription:
    """A subscription: a set of metrics, the clients that push them, and the interval between two pushes.

    `conditions` maps names of client properties, for example "client_id", to regular expressions. The subscription
    applies to a client if each property in `conditions` matches its regular expression.
    """

    metrics: tuple[str, ...]
    interval_ms: int
    conditions: Mapping[str, TopicRegex]

    def applies_to(self, client: TelemetryClient) -> bool:
        return all(regex.matches(getattr(client, name)) for name, regex in self.conditions.items())


def subscription_of(configs: Mapping[str, str]) -> MetricsSubscription:
    """Return the subscription with these settings. Raises ConfigError."""
    texts = {name: key.normal(configs[name]) if name in configs else key.default_text for name, key in KEYS.items()}
    conditions: dict[str, TopicRegex] = {}
    for text in split_list(texts["match"] or ""):
        name, equals, expression = (part.strip() for part in text.partition("="))
        if not equals or name not in CONDITIONS:
            names = ", ".join(CONDITIONS)
            why = f"{text!r} is not a condition; write name=expression, with one of the names {names}"
            raise ConfigError(why, "match", configs["match"])
        try:
            conditions[name] = TopicRegex(expression)
        except InvalidRegex as error:
            why = f"{expression!r} is not a regular expression: {error.reason}"
            raise ConfigError(why, "match", configs["match"]) from None
    return MetricsSubscription(tuple(split_list(texts["metrics"] or "")), int(texts["interval.ms"] or 0), conditions)


class RequestedMetrics(NamedTuple):
    """The metrics that the broker requests from one client instance: which metrics to push, and how often.

    The subscription id is a checksum of the metrics, the interval and the client instance id. If the metrics or
    the interval change, the id changes too.
    """

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


def requested_from(client: TelemetryClient, subscriptions: Iterable[MetricsSubscription]) -> RequestedMetrics:
    """Return the metrics and the shortest interval of all subscriptions that apply to a client.

    The interval is at most DEFAULT_INTERVAL_MS, even if all subscriptions have longer intervals.
    """
    found = [each for each in subscriptions if each.applies_to(client)]
    names = {name for each in found for name in each.metrics}
    metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(sorted(names))
    interval_ms = min([DEFAULT_INTERVAL_MS, *(each.interval_ms for each in found)])
    text = ",".join((*metrics, str(interval_ms), client.client_instance_id))
    return RequestedMetrics(metrics, interval_ms, zlib.crc32(text.encode()) >> 1)  # The id has 31 bits.


NO_INSTANCE_ID = UUID(int=0)
RESERVED_IDS = {NO_INSTANCE_ID, UUID(int=1)}  # ids that Kafka never assigns
