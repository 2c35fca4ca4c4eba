"""A broker's settings in force, and where each of them comes from.

A value is looked for in four layers, and the first that has one wins (KIP-226):

1. set for this broker while it ran, by AlterConfigs;
2. set so for all brokers, that is under the name "";
3. given at the start: `server.properties`, the environment, -X;
4. the default.

The first two are kept in `configs.json` (config_store.py).  What may be altered so says it in its declaration
(config.py); parts of the broker that keep a value listen for its change, all others ask `current` each time.

A setting that is a topic's default has two names, `log.retention.ms` here and `retention.ms` there, and times have
coarser names besides.  All places where a value could come from are its synonyms, in the order above.  Kafka leaves out
of them what comes before the first with the very name that is asked for, and so do we: an admin client that shows
`log.retention.ms` should not have to explain `log.retention.hours`.
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
from hmb.storage.log_manager import DataDirectoryError

LOGGER = logging.getLogger(__name__)
MOST_SETTINGS = 1000  # of a broker: unknown ones are kept as well, and a client can invent any number
MOST_GROUPS = 10_000  # with settings of their own
MOST_WARNINGS = 10  # about one request
IDS = ("broker.id", "node.id")


class Synonym(NamedTuple):
    """A place where a value could come from."""

    name: str
    value: str | None  # None: not to be told
    source: ConfigSource


class DynamicConfig:
    """The settings of one broker."""

    def __init__(self, properties: Mapping[str, str], store: ConfigStore) -> None:
        """`properties`: those given at the start.  Raises ConfigError, DataDirectoryError."""
        self._static = _with_both_ids(properties)
        self._store = store
        # Held from the reading of a resource's settings to their change, so that no other change is lost in between.
        # Taken before all other locks.
        self.alterations = threading.Lock()
        # Guards the store and the change of `current`; listeners are called under it, and take Topics' lock.
        self._lock = threading.Lock()
        self._listeners: list[Callable[[BrokerConfig], None]] = []
        self.name = str(BrokerConfig.from_properties(properties).broker_id)
        try:
            self.current = BrokerConfig.from_properties(self._merged(store.brokers))
        except ConfigError as error:
            raise DataDirectoryError(f"{store.path}: {error}") from error

    def listen(self, listener: Callable[[BrokerConfig], None]) -> None:
        """Have it called with the settings, now and after each change."""
        with self._lock:
            self._listeners.append(listener)
            listener(self.current)

    def altered(self, broker: str) -> Mapping[str, str]:
        """What was set while the broker ran, for it or for ALL_BROKERS."""
        return self._store.brokers.get(broker, {})

    def alter(self, broker: str, configs: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Put these in the place of all that was set for the broker.  Raises INVALID_REQUEST, KAFKA_STORAGE_ERROR."""
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
        """What was set for a group."""
        return self._store.groups.get(group, {})

    def alter_groups(self, groups: Mapping[str, Mapping[str, str]]) -> None:
        """Replace all that was set for these groups.  Raises INVALID_REQUEST (too many groups), OSError."""
        with self._lock:
            changed = {**self._store.groups, **groups}
            if len(changed) > max(MOST_GROUPS, len(self._store.groups)):
                why = f"at most {MOST_GROUPS} groups have settings of their own"
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            self._store.write(groups=changed)

    def _merged(self, brokers: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        return {**self._static, **brokers.get(ALL_BROKERS, {}), **brokers.get(self.name, {})}

    def value(self, name: str) -> str | None:
        """In force, as text."""
        key, text = BROKER_CONFIGS[name], self._merged(self._store.brokers).get(name)
        return key.default_text if text is None else key.normal(text)

    def synonyms(self, name: str) -> list[Synonym]:
        """The places where the value of a broker's setting could come from; the first is where it does come from."""
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
    """The settings with their values as we write them.  What nobody knows is kept, as Kafka does."""
    new = [name for name in configs if name not in before]
    if len(configs) > MOST_SETTINGS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{len(configs)} settings, at most {MOST_SETTINGS} are kept")
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
    """A setting's own name and Kafka's other ones for it, the finest first."""
    finest = TIMES[name][0] if name in TIMES else name
    return [finest, *(coarse for coarse, (finer, _) in reversed(TIMES.items()) if finer == finest)]


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """A broker's id is told under both its names."""
    given = next((properties[name] for name in IDS if name in properties), None)
    return {**properties, **({} if given is None else dict.fromkeys(IDS, given))}
