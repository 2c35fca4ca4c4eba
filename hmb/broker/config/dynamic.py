"""Stores the broker's current settings, and remembers where the value of each setting comes from.

The value of a setting can come from four sources. If several sources contain a value, the broker uses the source that
comes first in this list (KIP-226):
1. the value that a client has set for this broker, with AlterConfigs;
2. the value that a client has set for all brokers, with AlterConfigs for the broker name "";
3. the value that the broker read when it started: from `server.properties`, the environment or the option -X;
4. the default.

Some defaults of HMB differ from Kafka's defaults. For example, `max.connections` is 4,096 in HMB, and has no
limit in Kafka.

Tools compare a setting's value with Kafka's default, so DescribeConfigs always returns Kafka's default as the
default. If HMB has another default, DescribeConfigs returns HMB's default as if the administrator had set it in
`server.properties`. For `max.connections`, Kafka's default is 2,147,483,647, and HMB's is 4,096.

The file `configs.json` contains the values of settings that clients have set (store.py). Clients can alter only the
settings that are declared as dynamic (broker.py).

Most parts of the broker read a setting from `DynamicConfig.current` at each use. Some parts keep a copy of a setting. A
part with a copy passes a function to `DynamicConfig.listen`, and the broker calls this function after each change of a
setting.

A setting can have several names. For example, `log.retention.ms` and `log.retention.hours` set the same time in
different units. A setting can also have several values, for example one in `server.properties` and a default.
Kafka calls each pair of a name and a value, such as `log.retention.hours=168`, a *synonym* of the setting.

A client requests a setting by name. The broker sorts the setting's synonyms (pairs of name and value), the
highest priority first. As in Kafka, the response starts at the first synonym with the requested name.

For example, the sorted synonyms are `log.retention.ms=5000`, which a client has set, and the default
`log.retention.hours=168`. A request for `log.retention.ms` returns both. A response for `log.retention.hours`
must begin with this name, so it contains only 168.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from itertools import dropwhile
from typing import NamedTuple

from hmb.broker.config.broker import BROKER_CONFIGS, TIMES, BrokerConfig
from hmb.broker.config.keys import ConfigError, check_length, nearest
from hmb.broker.config.store import ConfigStore
from hmb.protocol.enums import ALL_BROKERS, ConfigSource
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.state.identity import DataDirectoryError

LOGGER = logging.getLogger(__name__)
MAX_SETTINGS = 1000  # limit for the number of altered settings of one broker
MAX_GROUPS = 10_000  # limit for the number of groups with altered settings
MAX_CLIENT_METRICS = 1000  # limit for the number of client-metrics subscriptions
# The names and values of one broker's altered settings can have at most this number of characters in total. The same
# limit applies to the names of all groups with altered settings, and to the names of all client-metrics subscriptions.
MAX_CHARACTERS = 1 << 20
MAX_WARNINGS = 10  # limit for the warnings about unknown settings in one request
IDS = ("broker.id", "node.id")
OWN_DEFAULTS = {
    name: key.default_text for name, key in BROKER_CONFIGS.items() if key.has_own_default and key.default_text
}
"""The settings for which HMB has chosen another default than Kafka."""


class Synonym(NamedTuple):
    """The name and the value of a setting in one source, for example in `server.properties`.

    A setting can have several names, and values in several sources. Kafka calls each pair of a name and a value a
    synonym of the setting.
    """

    name: str
    value: str | None  # None if the value may be a secret
    source: ConfigSource


class DynamicConfig:
    """The settings of one broker, which clients can change while the broker runs. Thread-safe.

    `current` contains one value of each setting: the first value in this list that exists:

    1. the value that a client has set for this broker
    2. the value that a client has set for all brokers
    3. the value that the broker read at its start
    4. the default

    After each change of `current`, the broker calls the functions in `_listeners` with the new value of `current`.
    A thread holds `_lock` while it changes `current` and calls these functions.
    """

    def __init__(self, properties: Mapping[str, str], store: ConfigStore) -> None:
        """Combine the settings from the broker's start (`properties`) with the settings that clients altered (`store`).

        Raises ConfigError for an invalid value in `properties`, and DataDirectoryError for an invalid value in
        `store`.
        """
        self._static = OWN_DEFAULTS | _with_both_ids(properties)
        self._store = store
        # A thread reads the settings of a resource, and then replaces them. Without the lock `alterations`, another
        # thread could change the settings between these two steps, and that change would be lost. A thread takes
        # `alterations` before any other lock.
        self.alterations = threading.Lock()
        # `_lock` guards the stored settings and `current`. A thread holds `_lock` while it calls the functions in
        # `_listeners`. One of these functions takes the lock of `Topics`. To prevent a deadlock, a thread must never
        # take `_lock` while it holds the lock of `Topics`.
        self._lock = threading.Lock()
        self._listeners: list[Callable[[BrokerConfig], None]] = []
        self.name = str(BrokerConfig.from_properties(properties).broker_id)
        try:
            self.current = BrokerConfig.from_properties(self._merged(store.brokers))
        except ConfigError as error:
            raise DataDirectoryError(f"{store.path}: {error}") from error

    def listen(self, listener: Callable[[BrokerConfig], None]) -> None:
        """Call the function `listener` with the settings: once now, and again after each change."""
        with self._lock:
            self._listeners.append(listener)
            listener(self.current)

    def altered(self, broker: str) -> Mapping[str, str]:
        """Return the settings that clients have altered for `broker`, which is a broker id or ALL_BROKERS."""
        return self._store.brokers.get(broker, {})

    def alter(self, broker: str, configs: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Remove all settings that clients have altered for a broker, and store `configs` instead.

        The text `broker` is a broker id or ALL_BROKERS. If `validate_only` is true, only check `configs`. Raises
        INVALID_REQUEST for invalid settings, and OSError if the file `configs.json` cannot be written.
        """
        with self._lock:
            configs = _checked(configs, self.altered(broker))
            brokers = {**self._store.brokers, broker: configs}
            try:
                changed = BrokerConfig.from_properties(self._merged(brokers))
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
            if validate_only:
                return
            self._store.write(brokers=brokers)
            self.current = changed
            for listener in self._listeners:
                listener(changed)

    def altered_of_group(self, group: str) -> Mapping[str, str]:
        """Return the settings that clients have altered for a group."""
        return self._store.groups.get(group, {})

    def altered_groups(self) -> list[str]:
        """Return the groups for which a client has altered settings."""
        return [group for group, configs in self._store.groups.items() if configs]

    def alter_groups(self, groups: Mapping[str, Mapping[str, str]]) -> None:
        """For each group in `groups`, replace the group's settings in `configs.json` with those in `groups`.

        Raises INVALID_REQUEST if `configs.json` would contain too many groups, or if all their names together would be
        too long. Raises OSError if `configs.json` cannot be written.
        """
        with self._lock:
            self._store.write(groups=_with_changes(self._store.groups, groups, MAX_GROUPS, "groups"))

    @property
    def client_metrics(self) -> Mapping[str, Mapping[str, str]]:
        """The settings of each client-metrics subscription (KIP-714). The key is the name of the subscription."""
        return self._store.client_metrics

    def alter_client_metrics(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Replace all settings of each client-metrics subscription in `changes` with new settings.

        Raises INVALID_REQUEST if `configs.json` would contain too many subscriptions, or if all their names together
        would be too long. Raises OSError if `configs.json` cannot be written.
        """
        with self._lock:
            before = self._store.client_metrics
            changed = _with_changes(before, changes, MAX_CLIENT_METRICS, "client-metrics subscriptions")
            self._store.write(client_metrics=changed)

    def _merged(self, brokers: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        return {**self._static, **brokers.get(ALL_BROKERS, {}), **brokers.get(self.name, {})}

    def value(self, name: str) -> str | None:
        """Return the current value of a setting, as text."""
        key, text = BROKER_CONFIGS[name], self._merged(self._store.brokers).get(name)
        return key.default_text if text is None else key.normal(text)

    def synonyms(self, name: str) -> list[Synonym]:
        """Return the values of a broker's setting, from the highest priority to the lowest.

        As in Kafka, the result begins with the first value that belongs to the requested `name`. For example, one
        setting has two names and two values: `log.retention.ms=5000` and, with lower priority,
        `log.retention.hours=168`. For `log.retention.hours`, the result contains only 168.
        """
        names = _names_for(name)
        layers = [
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.altered(self.name)),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.altered(ALL_BROKERS)),
            (ConfigSource.STATIC_BROKER_CONFIG, self._static),
            (
                ConfigSource.DEFAULT_CONFIG,
                {each: key.kafka_default_text for each in names if (key := BROKER_CONFIGS.get(each))},
            ),
        ]
        found = [
            Synonym(each, value, source)
            for source, layer in layers
            for each in names
            if (value := layer.get(each)) is not None
        ]
        return list(dropwhile(lambda synonym: synonym.name != name, found))


def _checked(configs: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Check the settings and write each value in its normal form: `true` instead of `TRUE`. Raises INVALID_REQUEST.

    Unknown settings stay in the result, because Kafka also stores unknown settings.
    """
    new = [name for name in configs if name not in before]
    if len(configs) > MAX_SETTINGS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{len(configs)} settings, at most {MAX_SETTINGS} are allowed")
    if sum(len(name) + len(text) for name, text in configs.items()) > MAX_CHARACTERS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"the names and values of the settings have more than {MAX_CHARACTERS} characters in total",
        )
    unknown = [name for name in new if name not in BROKER_CONFIGS]
    for name in unknown[:MAX_WARNINGS]:
        LOGGER.warning("unknown setting %.200r has no effect%s", name, nearest(name, BROKER_CONFIGS))
    if fixed := [name for name in new if name in BROKER_CONFIGS and not BROKER_CONFIGS[name].dynamic]:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"these settings can be altered only before the broker starts: {', '.join(fixed)}",
        )
    try:
        for name, text in configs.items():
            check_length(text, name)
        return {
            name: BROKER_CONFIGS[name].normal(text) if name in BROKER_CONFIGS else text
            for name, text in configs.items()
        }
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _with_changes(
    before: Mapping[str, Mapping[str, str]], changes: Mapping[str, Mapping[str, str]], most: int, noun: str
) -> Mapping[str, Mapping[str, str]]:
    """Return a copy of `before`, updated with the items of `changes`.

    The keys of `before` and `changes` are names, for example of groups. The value for a group contains its
    settings.

    Raises INVALID_REQUEST if the copy would have too many keys, or if the keys would have more than MAX_CHARACTERS
    characters in total.
    """
    changed = {**before, **changes}
    if len(changed) > max(most, len(before)):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"at most {most} {noun} may have settings of their own")
    if sum(map(len, changed)) > MAX_CHARACTERS:
        why = f"the names of {noun} with settings have more than {MAX_CHARACTERS} characters in total"
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    return changed


def _names_for(name: str) -> list[str]:
    """Return all names of a setting, the smallest unit first: log.retention.ms, .minutes and .hours."""
    finest = TIMES[name][0] if name in TIMES else name
    return [finest, *(coarse for coarse, (finer, _) in reversed(TIMES.items()) if finer == finest)]


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """Copy the settings, and add the broker's id under both of its names, `broker.id` and `node.id`."""
    given = next((properties[name] for name in IDS if name in properties), None)
    return {**properties, **({} if given is None else dict.fromkeys(IDS, given))}
