"""The broker's settings, under the names of Kafka's `server.properties`.

One line declares a setting: its Kafka name, default, meaning, least and greatest value.  Settings that are defaults for
topics belong to `LogConfig` (storage/config.py); LOG_DEFAULTS says which broker name sets which of them.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hmb.defaults import DEFAULT_DATA_DIR, DEFAULT_SERVER
from hmb.storage.config import INT_MAX, MIB, LogConfig

LOG_DEFAULTS = {
    "log.segment.bytes": "segment.bytes",
    "log.roll.ms": "segment.ms",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.index.interval.bytes": "index.interval.bytes",
    "message.max.bytes": "max.message.bytes",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.cleanup.policy": "cleanup.policy",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.retention.ms": "retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
}
# Kafka's coarser names for a time, each before the finer one that overrules it, and their unit in ms.
TIMES = {
    "log.retention.hours": ("log.retention.ms", 60 * 60 * 1000),
    "log.retention.minutes": ("log.retention.ms", 60 * 1000),
    "log.roll.hours": ("log.roll.ms", 60 * 60 * 1000),
}
ALIASES = {"node.id": "broker.id", "log.dir": "log.dirs"}
OVERRULED = [*TIMES, "log.dir"]  # by other names for the same setting, wherever they stand


class ConfigError(Exception):
    """A value that a setting cannot take; says which (none: it has no name), and what it can take."""

    def __init__(self, problem: str, name: str = "", value: str = "") -> None:
        super().__init__(problem, name, value)
        self.problem, self.name, self.value = problem, name, value

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.problem}" if self.name else self.problem


def _key(name: str, default: object, doc: str, minimum: float = -math.inf, maximum: float = math.inf) -> Any:
    return field(default=default, metadata={"name": name, "doc": doc, "minimum": minimum, "maximum": maximum})


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """All settings of a broker.  Sizes in bytes, times in ms."""

    # fmt: off
    broker_id: int             = _key("broker.id", 0, "the id of this broker, as clients see it", 0, INT_MAX)
    listeners: str             = _key("listeners", f"PLAINTEXT://{DEFAULT_SERVER}", "where to listen: NAME://host:port")
    advertised_listeners: str  = _key("advertised.listeners", "", "what clients are told to connect to")
    listener_protocols: str    = _key("listener.security.protocol.map", "", "what listeners speak: NAME:PLAINTEXT")
    log_dirs: str              = _key("log.dirs", DEFAULT_DATA_DIR, "the data directory (one)")
    num_partitions: int        = _key("num.partitions", 1, "partitions of a topic that does not say", 1)
    auto_create_topics: bool   = _key("auto.create.topics.enable", True, "make a topic when a client asks for it")
    request_max_bytes: int     = _key("socket.request.max.bytes", 100 * MIB, "largest request", 1, INT_MAX)
    max_connections: int       = _key("max.connections", 4096, "most connections at once", 1)
    connections_max_idle: int  = _key("connections.max.idle.ms", 600_000, "close a connection that is idle for", 1)
    fetch_max_bytes: int       = _key("fetch.max.bytes", 55 * MIB, "most bytes that one fetch answers", 1024, INT_MAX)
    fetch_session_slots: int   = _key("max.incremental.fetch.session.cache.slots", 1000, "most sessions", 0, INT_MAX)
    fetch_session_eviction: int = _key("min.incremental.fetch.session.eviction.ms", 120_000, "may go after", 0, INT_MAX)
    flush_acks_all: bool       = _key("log.flush.acks.all", True, "sync to disk before acks=all is answered")
    retention_check_interval: int = _key("log.retention.check.interval.ms", 300_000, "look for old segments every", 1)
    flush_check_interval: int  = _key("log.flush.offset.checkpoint.interval.ms", 60_000, "sync and checkpoint every", 1)
    cleaner_backoff: int       = _key("log.cleaner.backoff.ms", 15_000, "compact every", 1)
    cleaner_memory: int        = _key("log.cleaner.dedupe.buffer.size", 128 * MIB, "memory for a log's keys", 1024)
    cleaner_rate: float        = _key("log.cleaner.io.max.bytes.per.second", math.inf, "throttle of compaction", 1)
    max_decompressed: int      = _key("max.decompressed.message.bytes", 64 * MIB, "largest decompressed batch", 1024)
    log: LogConfig             = field(default=LogConfig())
    # fmt: on

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Settings from name=value pairs; unknown names are left out (see `unknown_names`).  Raises ConfigError."""
        values: dict[str, object] = {}
        log_values: dict[str, Any] = {}
        in_order = [name for name in OVERRULED if name in properties]
        in_order += [name for name in properties if name not in OVERRULED]
        for given in in_order:  # what is wrong is told under the name that was given
            text, name = properties[given], ALIASES.get(given, given)
            if name in TIMES:
                finest, unit = TIMES[name]
                key = TOPIC_KEYS[LOG_DEFAULTS[finest]]
                log_values[key.name] = _milliseconds(name, text, unit, key)
            elif name in LOG_DEFAULTS:
                key = TOPIC_KEYS[LOG_DEFAULTS[name]]
                log_values[key.name] = parse_value(given, text, key)
            elif name in BROKER_KEYS:
                values[BROKER_KEYS[name].name] = parse_value(given, text, BROKER_KEYS[name])
        return cls(**values, log=LogConfig(**log_values))  # type: ignore[arg-type]


BROKER_KEYS = {f.metadata["name"]: f for f in dataclasses.fields(BrokerConfig) if f.metadata}
TOPIC_KEYS = {f.name.replace("_", "."): f for f in dataclasses.fields(LogConfig)}
NAMES = [*BROKER_KEYS, *LOG_DEFAULTS, *TIMES, *ALIASES]
VARIABLES = {"HMB_" + name.upper().replace(".", "_"): name for name in NAMES}


def log_config(configs: Mapping[str, str], default: LogConfig) -> LogConfig:
    """A topic's settings: `default` with what the topic sets.  Raises ConfigError."""
    for name in configs:
        if name not in TOPIC_KEYS:
            raise ConfigError(
                f"unknown topic config {name!r}{_nearest(name, TOPIC_KEYS)}; known: {', '.join(TOPIC_KEYS)}"
            )
    values = {TOPIC_KEYS[name].name: parse_value(name, text, TOPIC_KEYS[name]) for name, text in configs.items()}
    return dataclasses.replace(default, **values)  # type: ignore[arg-type]


def parse_value(name: str, text: str, key: dataclasses.Field[Any]) -> float | str | bool:
    """A setting's value from its text.  Raises ConfigError."""
    if key.type == "bool":
        if text.lower() not in ("true", "false"):
            raise ConfigError("must be true or false", name, text)
        return text.lower() == "true"
    if key.type in ("int", "float"):
        try:
            value = int(text) if key.type == "int" else float(text)
        except ValueError:
            raise ConfigError(f"must be a {'whole ' if key.type == 'int' else ''}number", name, text) from None
        if value > key.metadata["maximum"]:
            raise ConfigError(f"must be at most {key.metadata['maximum']}", name, text)
        if not value >= key.metadata["minimum"]:  # nor is NaN
            raise ConfigError(f"must be at least {key.metadata['minimum']}", name, text)
        return value
    choices = key.metadata.get("choices")
    if choices and text not in choices:
        raise ConfigError(f"must be one of {', '.join(choices)}", name, text)
    return text


def _milliseconds(name: str, text: str, unit: int, key: dataclasses.Field[Any]) -> int:
    """A time that is given in a coarser unit; below zero it means for ever, and has no unit."""
    time = parse_value(name, text, key)
    assert isinstance(time, int)
    if time * unit > key.metadata["maximum"]:
        raise ConfigError(f"must be at most {key.metadata['maximum'] // unit}", name, text)
    return time * unit if time > 0 else time


def unknown_names(properties: Iterable[str]) -> list[str]:
    """A warning for each name that is no setting, with the nearest that is."""
    return [f"unknown setting {name!r} is ignored{_nearest(name, NAMES)}" for name in properties if name not in NAMES]


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """The same for variables; only of those that look like settings, since others may have other users."""
    return [
        f"unknown setting {variable!r} is ignored{nearest}"
        for variable in environment
        if variable.startswith("HMB_") and variable not in VARIABLES
        if (nearest := _nearest(variable, VARIABLES, cutoff=0.8))
    ]


def environment_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings from variables such as HMB_LOG_SEGMENT_BYTES, which sets log.segment.bytes."""
    return {VARIABLES[variable]: value for variable, value in environment.items() if variable in VARIABLES}


def _nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    matches = difflib.get_close_matches(name, list(known), 1, cutoff)
    return f", did you mean {matches[0]!r}?" if matches else ""
