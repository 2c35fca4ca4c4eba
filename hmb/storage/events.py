"""The last events of a broker, for example a rebalance, the start of a new segment, or a deleted segment.

Log messages also show what has happened, but only if logging was switched on before the event. So the broker always
keeps its last 1,000 events in memory, which takes at most 0.4 MB. For example, a broker deletes two segments. The
newest event then has this number, time (ms), kind and text:
    (41, 1795627942326, "retention", "orders-0: deleted the records at offsets 0 to 1999 (segments: 2)")
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from itertools import count
from typing import NamedTuple

from hmb.printable import printable
from hmb.units import now_ms

EVENTS_KEPT = 1000
LONGEST_EVENT_TEXT = 300  # characters; a longer text is cut


class EventKind(StrEnum):
    """The kind of an event. For example, `ROLL` means that a log has started a new segment."""

    GROUP = "group"
    ROLL = "roll"
    RETENTION = "retention"
    COMPACTION = "compaction"
    RECOVERY = "recovery"
    TOPIC = "topic"
    LOGIN = "login"


class Event(NamedTuple):
    """Something that happened in the broker. A gap in the event numbers shows that a reader missed events."""

    number: int  # 0 for the first event of the log
    time: int  # ms since 1970
    kind: EventKind
    text: str


class EventLog:
    """The last EVENTS_KEPT events of a broker, oldest first. All methods are thread-safe."""

    def __init__(self, clock: Callable[[], int] = now_ms) -> None:
        """Create an empty event log. The function `clock` returns the time in ms since 1970."""
        self._clock = clock
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._numbers = count()

    def add(self, kind: EventKind, text: str, logger: logging.Logger, level: int = logging.INFO) -> None:
        """Store an event, and write a line with the same text to `logger`.

        The text can contain names that a client has chosen, with any characters. So the method first converts the text
        to one printable line.
        """
        text = printable(text)
        logger.log(level, "%s", text)
        self._events.append(Event(next(self._numbers), self._clock(), kind, text[:LONGEST_EVENT_TEXT]))

    def all(self) -> list[Event]:
        """Return the stored events, oldest first.

        The method copies the deque of events in one operation, so no other thread can change the deque during the copy.
        """
        return list(self._events.copy())
