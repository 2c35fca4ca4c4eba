"""The broker's current settings, and the source of each value.

A setting gets its value from the first of these sources that has one (KIP-226):

1. the value that AlterConfigs has set for this broker;
2. the value that AlterConfigs has set for all brokers, under the name "";
3. the value at the start, from `server.properties`, the environment or the option -X;
4. the default.

The file `configs.json` contains the values that AlterConfigs has set (store.py). The declaration of a setting states
whether it is dynamic (broker_config.py). A part of the broker that stores a value listens for changes. All other parts
read `current` each time.

A setting that is a default for topics has two names: `log.retention.ms` for the broker and `retention.ms` for the
topic. Times also have names in coarser units. The synonyms of a setting are all sources that could have its value, in
the order of the sources. HMB omits the synonyms before the first one with exactly the requested name, as Kafka does. An
admin client that shows `log.retention.ms` should not have to explain `log.retention.hours`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from itertools import dropwhile
from typing import NamedTuple

from hmb.broker.config.broker_config import BROKER_CONFIGS, TIMES, BrokerConfig
from hmb.broker.config.keys import ConfigError, check_length, nearest
from hmb.broker.config.store import ConfigStore
from hmb.protocol.enums import ALL_BROKERS, ConfigSource
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.state.identity import DataDirectoryError

LOGGER = logging.getLogger(__name__)
MOST_SETTINGS = 1000  # altered settings of one broker; a client can invent any number of unknown settings
MOST_GROUPS = 10_000  # groups that may have altered settings
MOST_CHARACTERS = 1 << 20  # in all altered names and values of one broker; also in all group names
MOST_WARNINGS = 10  # warnings about unknown settings for one request
IDS = ("broker.id", "node.id")


class Synonym(NamedTuple):
    """A source that could have the value of a setting, with the name that the setting has in this source."""

    name: str
    value: str | None  # None if the value is sensitive
    source: ConfigSource


class DynamicConfig:
    """The settings of one broker, which clients may change while it runs."""

    def __init__(self, properties: Mapping[str, str], store: ConfigStore) -> None:
        """Use the settings of the start (`properties`) and the altered ones. Raises ConfigError, DataDirectoryError."""
        self._static = _with_both_ids(properties)
        self._store = store
        # A thread holds this lock while it reads and replaces a resource's settings, so that no other change is lost.
        # It takes this lock before all other locks.
        self.alterations = threading.Lock()
        # This lock guards the stored settings and `current`. The thread that changes them calls the listeners while it
        # holds this lock, and a listener may take the lock of `Topics`.
        self._lock = threading.Lock()
        self._listeners: list[Callable[[BrokerConfig], None]] = []
        self.name = str(BrokerConfig.from_properties(properties).broker_id)
        try:
            self.current = BrokerConfig.from_properties(self._merged(store.brokers))
        except ConfigError as error:
            raise DataDirectoryError(f"{store.path}: {error}") from error

    def listen(self, listener: Callable[[BrokerConfig], None]) -> None:
        """Call the listener with the settings, now and after each change."""
        with self._lock:
            self._listeners.append(listener)
            listener(self.current)

    def altered(self, broker: str) -> Mapping[str, str]:
        """Return the settings that clients have altered for `broker`: a broker id, or ALL_BROKERS."""
        return self._store.brokers.get(broker, {})

    def alter(self, broker: str, configs: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Replace all altered settings of the broker. Raises INVALID_REQUEST, KAFKA_STORAGE_ERROR."""
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

    def alter_groups(self, groups: Mapping[str, Mapping[str, str]]) -> None:
        """Replace all altered settings of these groups. Raises INVALID_REQUEST (too many groups), OSError."""
        with self._lock:
            changed = {**self._store.groups, **groups}
            if len(changed) > max(MOST_GROUPS, len(self._store.groups)):
                why = f"at most {MOST_GROUPS} groups have settings of their own"
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            if sum(map(len, changed)) > MOST_CHARACTERS:
                why = f"the names of groups with settings have more than {MOST_CHARACTERS} characters together"
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            self._store.write(groups=changed)

    def _merged(self, brokers: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        return {**self._static, **brokers.get(ALL_BROKERS, {}), **brokers.get(self.name, {})}

    def value(self, name: str) -> str | None:
        """Return the current value of a setting, as text."""
        key, text = BROKER_CONFIGS[name], self._merged(self._store.brokers).get(name)
        return key.default_text if text is None else key.normal(text)

    def synonyms(self, name: str) -> list[Synonym]:
        """Return the sources of a broker's setting that have a value; the first one has the current value."""
        names = _names_for(name)
        layers = [
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.altered(self.name)),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.altered(ALL_BROKERS)),
            (ConfigSource.STATIC_BROKER_CONFIG, self._static),
            (
                ConfigSource.DEFAULT_CONFIG,
                {each: key.default_text for each in names if (key := BROKER_CONFIGS.get(each))},
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
    """Return settings with their values in the normal form. The result contains unknown settings, too, as in Kafka."""
    new = [name for name in configs if name not in before]
    if len(configs) > MOST_SETTINGS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{len(configs)} settings, at most {MOST_SETTINGS} are kept")
    if sum(len(name) + len(text) for name, text in configs.items()) > MOST_CHARACTERS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"settings with more than {MOST_CHARACTERS} characters together")
    unknown = [name for name in new if name not in BROKER_CONFIGS]
    for name in unknown[:MOST_WARNINGS]:
        LOGGER.warning("unknown setting %.200r has no effect%s", name, nearest(name, BROKER_CONFIGS))
    if fixed := [name for name in new if name in BROKER_CONFIGS and not BROKER_CONFIGS[name].dynamic]:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"cannot be altered while the broker runs, only at its start: {', '.join(fixed)}"
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


def _names_for(name: str) -> list[str]:
    """Return all names that Kafka has for a setting. The name with the finest unit is the first."""
    finest = TIMES[name][0] if name in TIMES else name
    return [finest, *(coarse for coarse, (finer, _) in reversed(TIMES.items()) if finer == finest)]


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the broker's id under each of the names in IDS."""
    given = next((properties[name] for name in IDS if name in properties), None)
    return {**properties, **({} if given is None else dict.fromkeys(IDS, given))}
