"""The log levels of the broker, which clients read and change as settings (KIP-412).

Clients see each Python logger of the broker as a setting. The setting has the logger's name, and its value is the
logger's level. The levels have Kafka's names, for example WARN instead of Python's WARNING. A level that a
client has set applies until the broker stops.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from hmb.broker.config.entries import ConfigDescription
from hmb.broker.config.keys import ConfigKey
from hmb.protocol.enums import ConfigSource, ConfigType
from hmb.protocol.errors import ErrorCode, KafkaError

ROOT = "root"
TRACE = 5  # Kafka's level TRACE. Python has no name for a level below DEBUG (10).
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


class Loggers:
    """All loggers of this process. The level of each logger is one setting."""

    @property
    def altered(self) -> Mapping[str, str]:
        """The levels of all loggers that have a level of their own, by the name of the logger.

        A logger without its own level inherits the level of its parent, and this mapping does not contain it.
        """
        return {name: _level_name(logger.level) for name, logger in _loggers().items() if logger.level}

    def entries(self) -> Iterator[ConfigDescription]:
        for name, logger in sorted(_loggers().items()):
            level = _level_name(logger.getEffectiveLevel())
            key = ConfigKey(name, ConfigType.UNKNOWN, None, "the logger's level")
            yield ConfigDescription(key, level, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG)

    def check(self, configs: Mapping[str, str]) -> None:
        """Raise KafkaError if a logger or a level does not exist, or if `configs` lacks the root logger."""
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
        """Set the levels of the loggers in `changes`, and remove the levels of all other loggers.

        A logger without its own level inherits the level of its parent. The method returns None for each change,
        because no change can fail.
        """
        for _, configs in changes:
            for name, logger in _loggers().items():
                logger.setLevel(LEVELS[configs[name]] if name in configs else logging.NOTSET)
        return [None] * len(changes)


def _loggers() -> dict[str, logging.Logger]:
    named = logging.root.manager.loggerDict.items()
    return {ROOT: logging.root, **{name: logger for name, logger in named if isinstance(logger, logging.Logger)}}


def _level_name(level: int) -> str:
    """Return Kafka's name for a Python log level, for example WARN for 30.

    A level between two named levels gets the lower name: 35 is above WARN (30) and below ERROR (40), so its name is
    WARN. A level below TRACE is also called TRACE.
    """
    return next((name for name, known in LEVELS.items() if level >= known), "TRACE")
