"""The report of a failed test: the lines that the broker logged during the test, and the last records of its topics."""

from __future__ import annotations

import logging
from collections import deque

from hmb.client import ConsumerRecord
from hmb.testing.embedded import Broker

MOST_LINES = 200  # the largest number of log lines in a report
MOST_TOPICS = 10
MOST_RECORDS = 5  # the largest number of records of each topic in a report
MOST_REQUESTS = 30
MOST_CHARACTERS = 80  # A report shows at most the first 80 characters of a key or a value.
LOGGERS = ("hmb.broker", "hmb.coordinator", "hmb.storage", "hmb.testing")
CONNECTIONS = "hmb.broker.network"  # This logger writes a line for each connection; a report leaves these lines out.


class LastLines(logging.Handler):
    """A log handler that stores the last log lines of the broker.

    pytest itself shows the lines whose level is its own log level or higher, usually WARNING. This handler passes these
    lines on to pytest, and keeps only the other lines. A report therefore shows each line once.

    pytest adds its handlers to the root logger and to loggers that do not propagate. This handler therefore belongs to
    a logger that pytest does not know. This logger becomes the parent of the broker's loggers.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=MOST_LINES)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
        self._levels: dict[str, int] = {}
        self._parents: dict[str, logging.Logger | None] = {}
        self._gate = logging.Logger("hmb.report")
        self._gate.propagate = False
        self._gate.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        name = next(name for name in LOGGERS if f"{record.name}.".startswith(f"{name}."))
        parent = self._parents[name]
        if parent is not None and record.levelno >= self._level_without_us(name, parent):
            parent.callHandlers(record)
        elif record.levelno > logging.INFO or not record.name.startswith(CONNECTIONS):
            self.lines.append(self.format(record))

    def _level_without_us(self, name: str, parent: logging.Logger) -> int:
        """Return the level that the logger `name` would have without this handler."""
        now = logging.getLogger(name).level
        return now if now != logging.INFO else self._levels[name] or parent.getEffectiveLevel()

    def start(self) -> None:
        """Begin to collect log lines of the level INFO and higher levels."""
        for name in LOGGERS:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            if logger.getEffectiveLevel() > logging.INFO:
                logger.setLevel(logging.INFO)
            self._parents[name] = self._gate.parent = logger.parent
            logger.parent = self._gate

    def stop(self) -> None:
        """Stop collecting log lines, and set the loggers to the levels that they had before `start`."""
        for name, level in self._levels.items():
            logger = logging.getLogger(name)
            logger.parent = self._parents[name]
            logger.setLevel(level)


def last_records(broker: Broker) -> str:
    """Return a text with the last records of each topic. Each line shows one record."""
    if not broker.is_running:
        return "the broker is not running"
    topics = broker.topics()
    lines = [line for topic in topics[-MOST_TOPICS:] for line in _lines_of(topic, broker.records(topic))]
    return "\n".join(lines) or "no topic has records"


def last_requests(broker: Broker) -> str:
    """Return a text with the last recorded requests, one on each line. Without recorded requests the text is empty."""
    recorded = broker.recorded_requests
    return "\n".join(
        f"{each.api} v{each.version} from {each.client_id!r}: {', '.join(each.errors) or each.closed or 'no error'}"
        f" after {1000 * each.duration:.1f} ms"
        for each in recorded[-MOST_REQUESTS:]
    )


def _lines_of(topic: str, records: list[ConsumerRecord]) -> list[str]:
    shown = records[-MOST_RECORDS:]
    head = f"{topic}: {len(records)} records" + (f", the last {len(shown)}:" if len(shown) < len(records) else "")
    return [
        head,
        *(f"  {each.topic}-{each.partition}@{each.offset} {_short(each.key)} = {_short(each.value)}" for each in shown),
    ]


def _short(value: bytes | None) -> str:
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}... ({len(value or b'')} B)"
