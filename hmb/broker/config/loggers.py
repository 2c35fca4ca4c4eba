"""The broker's loggers as settings. A setting's name is a logger's name, and its value is the level (KIP-412).

The loggers are Python's, with Kafka's names for the levels. A level applies until the broker stops.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from hmb.broker.config.entries import ConfigDescription
from hmb.broker.config.keys import ConfigKey
from hmb.protocol.enums import ConfigSource, ConfigType
from hmb.protocol.errors import ErrorCode, KafkaError

ROOT = "root"
TRACE = 5  # a level without a name in Python
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


class Loggers:
    """The loggers of this process, as a resource whose settings are the levels."""

    @property
    def altered(self) -> Mapping[str, str]:
        """The level of each logger that does not inherit its parent's level."""
        return {name: _level_name(logger.level) for name, logger in _loggers().items() if logger.level}

    def entries(self) -> Iterator[ConfigDescription]:
        for name, logger in sorted(_loggers().items()):
            level = _level_name(logger.getEffectiveLevel())
            key = ConfigKey(name, ConfigType.UNKNOWN, None, "the logger's level")
            yield ConfigDescription(key, level, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG)

    def check(self, configs: Mapping[str, str]) -> None:
        """Raise KafkaError for a logger or a level that does not exist, or if the root logger has no level."""
        loggers = _loggers()
        for name, level in configs.items():
            if name not in loggers:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"logger {name!r} does not exist")
            if level not in LEVELS:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"{level!r} is not one of {', '.join(LEVELS)}")
        if ROOT not in configs:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the root logger needs a level")

    @staticmethod
    def alter_all(changes: Sequence[tuple[Loggers, Mapping[str, str]]], broker: object) -> list[KafkaError | None]:
        """Set the levels of the named loggers; all other loggers inherit the level of their parents."""
        for _, configs in changes:
            for name, logger in _loggers().items():
                logger.setLevel(LEVELS[configs[name]] if name in configs else logging.NOTSET)
        return [None] * len(changes)


def _loggers() -> dict[str, logging.Logger]:
    named = logging.root.manager.loggerDict.items()
    return {ROOT: logging.root, **{name: logger for name, logger in named if isinstance(logger, logging.Logger)}}


def _level_name(level: int) -> str:
    """Return Kafka's name of a level. A level without a name gets the name of the next finer one."""
    return next((name for name, known in LEVELS.items() if level >= known), "TRACE")
