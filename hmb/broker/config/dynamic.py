"""The broker's current settings, and the source of each value.

Four sources may have a value, and the first one that has it wins (KIP-226):

1. set for this broker while it ran, by AlterConfigs;
2. set for all brokers while it ran, that is under the name "";
3. given at the start: `server.properties`, the environment, -X;
4. the default.

The first two are kept in `configs.json` (store.py). The declaration of a setting says whether it is dynamic
(broker_config.py). A part of the broker that keeps a value listens for changes. All other parts read `current` each
time.

A setting that is a default for topics has two names: `log.retention.ms` for the broker and `retention.ms` for the
topic. Times also have names in coarser units. All sources that could have the value are its synonyms, in the order
above. Kafka omits the synonyms before the first one with exactly the requested name, and so does HMB. An admin client
that shows `log.retention.ms` should not have to explain `log.retention.hours`.
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
MOST_SETTINGS = 1000  # of one broker; unknown settings are kept, too, and a client can invent any number of them
MOST_GROUPS = 10_000  # groups with settings of their own
MOST_CHARACTERS = 1 << 20  # of all names and values that were set for one broker; of all groups with settings
MOST_WARNINGS = 10  # in one request
IDS = ("broker.id", "node.id")


class Synonym(NamedTuple):
    """A source that could have the value of a setting."""

    name: str
    value: str | None  # None if the value must not be shown
    source: ConfigSource


class DynamicConfig:
    """The settings of one broker."""

    def __init__(self, properties: Mapping[str, str], store: ConfigStore) -> None:
        """`properties` are the settings given at the start. Raises ConfigError, DataDirectoryError."""
        self._static = _with_both_ids(properties)
        self._store = store
        # Held while a resource's settings are read and changed, so that no other change gets lost.
        # It is taken before all other locks.
        self.alterations = threading.Lock()
        # Guards the store and the change of `current`. Listeners are called while it is held, and take the lock of
        # Topics.
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
        """Return what was set while the broker ran, for this broker or for ALL_BROKERS."""
        return self._store.brokers.get(broker, {})

    def alter(self, broker: str, configs: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Replace everything that was set for the broker. Raises INVALID_REQUEST, KAFKA_STORAGE_ERROR."""
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
        """Return what was set for a group."""
        return self._store.groups.get(group, {})

    def alter_groups(self, groups: Mapping[str, Mapping[str, str]]) -> None:
        """Replace everything that was set for these groups. Raises INVALID_REQUEST (too many groups), OSError."""
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
    """Return settings with their values in the normal form. Unknown settings are kept, as in Kafka."""
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
    """Return the name of a setting and its other names in Kafka, the finest unit first."""
    finest = TIMES[name][0] if name in TIMES else name
    return [finest, *(coarse for coarse, (finer, _) in reversed(TIMES.items()) if finer == finest)]


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the broker's id under both of its names."""
    given = next((properties[name] for name in IDS if name in properties), None)
    return {**properties, **({} if given is None else dict.fromkeys(IDS, given))}
