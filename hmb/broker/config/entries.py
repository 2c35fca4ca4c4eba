"""The descriptions of settings for DescribeConfigs. Each description lists the setting's values from all sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hmb.broker.config.broker import BROKER_CONFIGS, LOG_DEFAULTS, TOPIC_KEYS
from hmb.broker.config.dynamic import DynamicConfig, Synonym
from hmb.broker.config.keys import ConfigKey
from hmb.broker.config.no_effect import RATES
from hmb.protocol.enums import ALL_BROKERS, ConfigSource, ConfigType

BROKER_NAMES = {topic_name: name for name, topic_name in LOG_DEFAULTS.items()}
LISTED_IF_SET = {key.name for key in RATES} | {"super.users", "allow.everyone.if.no.acl.found"}


class ConfigDescription(NamedTuple):
    """One setting of a topic, a broker or a group, with its current value and the source of this value.

    A setting can have a value in several sources, for example in the configuration file and as a default. Kafka
    calls these values the *synonyms* of the setting (dynamic.py).
    """

    key: ConfigKey
    value: str | None
    source: ConfigSource
    synonyms: Sequence[Synonym] = ()
    read_only: bool = False
    is_sensitive: bool = False


def topic_entries(configs: Mapping[str, str], broker: DynamicConfig) -> Iterator[ConfigDescription]:
    """Return all settings of a topic. `configs` contains the settings that were set for this topic."""
    for name, key in sorted(TOPIC_KEYS.items()):
        broker_name = BROKER_NAMES.get(name)
        synonyms = broker.synonyms(broker_name) if broker_name else []
        if name in configs:
            synonyms.insert(0, Synonym(name, configs[name], ConfigSource.DYNAMIC_TOPIC_CONFIG))
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        yield ConfigDescription(key, configs.get(name, _default(key, broker_name, broker)), source, synonyms)


def _default(key: ConfigKey, broker_name: str | None, broker: DynamicConfig) -> str | None:
    """Return the value of the setting `key` for topics without a value of their own.

    If the broker has a setting with the same meaning, return the broker's value. Otherwise return the default.
    """
    if key.field:
        return key.text(getattr(broker.current.log, key.field))
    return broker.value(broker_name) if broker_name else key.default_text


def broker_entries(broker: DynamicConfig) -> Iterator[ConfigDescription]:
    """Return all settings of this broker."""
    altered = {**broker.altered(ALL_BROKERS), **broker.altered(broker.name)}
    for name in sorted({*BROKER_CONFIGS, *altered} - (LISTED_IF_SET - altered.keys())):
        synonyms = broker.synonyms(name)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        if (key := BROKER_CONFIGS.get(name)) is None:
            yield _unknown(name, synonyms)
        else:
            yield _described(key, broker.value(name), source, synonyms)


def default_broker_entries(broker: DynamicConfig) -> Iterator[ConfigDescription]:
    """Return the settings that clients have set for all brokers. In AlterConfigs, the name "" means all brokers."""
    for name, value in sorted(broker.altered(ALL_BROKERS).items()):
        synonyms = [Synonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)]
        if (key := BROKER_CONFIGS.get(name)) is None:
            yield _unknown(name, synonyms)
        else:
            yield _described(key, value, synonyms[0].source, synonyms)


def _described(
    key: ConfigKey, value: str | None, source: ConfigSource, synonyms: Sequence[Synonym]
) -> ConfigDescription:
    """Return the description of a broker's setting. Hide the value of a secret."""
    if key.type is not ConfigType.PASSWORD:
        return ConfigDescription(key, value, source, synonyms, read_only=not key.dynamic)
    hidden = [synonym._replace(value=None) for synonym in synonyms]
    return ConfigDescription(key, None, source, hidden, read_only=not key.dynamic, is_sensitive=True)


def _unknown(name: str, synonyms: Sequence[Synonym]) -> ConfigDescription:
    """Return the description of a setting that the broker does not know. Hide the value, because it may be a secret."""
    key = ConfigKey(name, ConfigType.UNKNOWN, None, "")
    hidden = [synonym._replace(value=None) for synonym in synonyms]
    return ConfigDescription(key, None, synonyms[0].source, hidden, read_only=True, is_sensitive=True)
