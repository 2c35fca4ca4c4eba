"""The feed sends the changes of a broker's state to each open page in a browser.

The state of a broker with 1,000 partitions is about 500 KB of JSON, but only a little of it changes in a
second. So the feed divides the state into parts. Each part has a key, such as `["partition", "orders", 0]`. A
new page first gets all parts, and then only the changes: `set` contains new and changed parts, and `gone`
contains the keys of deleted parts.
    event: state    data: {"version": 7, "set": [[["broker"], {...}], [["topic", "orders"], {...}], ...], "gone": []}
    event: change   data: {"version": 8, "set": [[["partition", "orders", 0], {"high_watermark": 351, ...}]], ...}

One thread collects the state for all pages. The thread starts when the first page connects, and ends when the
last page disconnects. It begins a collection every 0.18 s (`OWN_PACE`), so a page gets about five events in a
second.

For example, clients send records to all 100 partitions of a broker. Every 180 ms, the feed collects the state of
this broker, which takes 5 ms of processor time. So the feed uses 3 % of one processor (5 of 180 ms). For a
broker with 1,000 partitions, 200 of which change, the feed takes 16 ms every 180 ms, and uses 9 %.

The feed's thread collects the state and then waits for at least four times the usual processor time of a
collection. For example, if a collection usually takes 100 ms, the thread waits for 400 ms. So the feed usually
uses at most 20 % of one processor.

The feed waits for at most 2 s after each collection of the broker's state. If a collection takes 1 s of
processor time, the feed uses 1 s of every 3 s, or 33 % of one processor.

To save memory, the feed stores only the last 8 changes of the state (KEPT). A page that reads its events slowly
can miss more than 8 changes. The feed then sends the whole state to this page.

Source: Server-Sent Events, in the HTML standard of the WHATWG.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from hmb.monitoring.state import BrokerState, PartitionInfo, fields_of

LOGGER = logging.getLogger(__name__)
REST_FACTOR, RECENT = 4, 5  # The class `Pace` explains these numbers.
KEPT = 8  # the feed keeps this number of changes
MAX_LISTENERS = 16  # the greatest number of pages that listen to all feeds of a server at the same time
# If the feed collects no new state for this time (seconds), it sends each page a comment, which browsers ignore. If
# the page has disconnected, sending fails, and the server ends the stream.
ALIVE = 5.0


class Pace(NamedTuple):
    """Determines how often the feed collects the broker's state.

    Normally, the feed starts a collection every `period` seconds. But after each collection, the feed pauses for at
    least REST_FACTOR (4) times the usual cost. For example, if the usual cost is 0.1 s, the pause takes at least
    0.4 s. No pause is longer than `longest` seconds.

    The usual cost is the median cost of the last RECENT (5) collections. If Python's garbage collector makes one of
    these collections expensive, the median hardly changes.
    """

    period: float  # seconds; the feed collects the broker's state at most once in this time
    longest: float  # seconds; the feed waits at most this time before it collects the broker's state again
    clock: Callable[[], float]  # processor time or elapsed time (seconds); measures the cost of a collection


OWN_PACE = Pace(0.18, 2.0, time.thread_time)
REMOTE_PACE = Pace(1.0, 30.0, time.monotonic)  # for the state of other processes, whose processor time is unknown

Parts = dict[tuple[Any, ...], Any]
# `segments` is missing, because the feed sends each segment of a partition as a separate object.
PARTITION_FIELDS = [field.name for field in fields(PartitionInfo) if field.name != "segments"]
# Each of these fields of `BrokerState` is a list of objects, for example of topics. The feed sends each object in a
# list separately. It sends all other fields together, as one object.
LISTS = {"topics", "groups", "transactions", "connections", "requests", "events"}
BROKER_FIELDS = [field.name for field in fields(BrokerState) if field.name not in LISTS]


def parts_of(state: BrokerState) -> Parts:
    """Divide a state into parts. Return a dict that maps the key of each part to the part.

    Most parts are objects of the state itself, not copies. For an unchanged partition, the `StateCache` usually
    puts the same object into the next state. The feed skips an object that is in both states, without comparing
    fields.
    """
    parts: Parts = {}
    parts[("broker",)] = {name: getattr(state, name) for name in BROKER_FIELDS}
    for topic in state.topics:
        count = len(topic.partitions)
        about = {"topic_id": topic.topic_id, "is_internal": topic.is_internal, "configs": topic.configs}
        parts["topic", topic.name] = about | {"partitions": count}
        for it in topic.partitions:
            parts["partition", topic.name, it.partition] = it
            for segment in it.segments:
                parts["segment", topic.name, it.partition, segment.base_offset] = segment
    parts |= {("group", each.group_id): each for each in state.groups}
    parts |= {("transaction", each.transactional_id): each for each in state.transactions}
    parts |= {("connection", each.client): each for each in state.connections}
    parts |= {("api", each.api): each for each in state.requests}
    parts |= {("event", each.number): each for each in state.events}
    return parts


class Feed:
    """Sends the parts of a broker's state, and then their changes, to the pages that are open in browsers."""

    def __init__(self, current: Callable[[], BrokerState], pace: Pace = OWN_PACE) -> None:
        """Create a feed. While a page is connected, the feed calls `current` to get the broker's state.

        `current` raises RuntimeError if the broker is not running. `pace` determines how often the feed calls
        `current`.
        """
        self._current = current
        self._pace = pace
        # The lock of this condition guards all fields below. A new version of the state wakes the waiting threads.
        self._changed = threading.Condition()
        self._parts: Parts = {}
        self._version = 0
        self._changes: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._listeners = 0
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    @property
    def listeners(self) -> int:
        """The number of pages that are connected to this feed."""
        return self._listeners

    @property
    def _has_ended(self) -> bool:
        """Whether the streams to all pages must end: the feed was stopped, or it cannot collect the broker's state."""
        return self._is_stopped or self._thread is None

    def _is_newer(self, seen: int) -> bool:
        return self._version != seen or self._has_ended

    def stop(self) -> None:
        """End the streams of all pages."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def listen(self) -> Generator[bytes, None, None]:
        """Yield the events for one page, as bytes, until the feed stops.

        The first event contains all parts of the broker's state. Each later event contains only the changes. If the
        page has missed more than KEPT changes, it gets all parts again.
        """
        with self._changed:
            self._listeners += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="page-feed", daemon=True)
                self._thread.start()
        try:
            yield from self._events()
        finally:
            with self._changed:
                self._listeners -= 1
                self._changed.notify_all()

    def _events(self) -> Iterator[bytes]:
        seen = 0
        while True:
            with self._changed:
                self._changed.wait_for(partial(self._is_newer, seen), ALIVE)
                if self._has_ended:
                    return
                pending = [change for version, change in self._changes if version > seen]
                is_complete = seen > 0 and len(pending) == self._version - seen
                parts = None if is_complete or not self._version else dict(self._parts)
                seen = self._version
            if parts is not None:
                yield _event("state", seen, parts, [])
            else:
                yield b"".join(pending) or b":\n\n"

    def _run(self) -> None:
        """Collect the state again and again, until no page is connected any more, or until the broker stops."""
        costs: deque[float] = deque(maxlen=RECENT)
        try:
            while True:
                next_start, started = time.monotonic() + self._pace.period, self._pace.clock()
                self._publish(parts_of(self._current()))
                costs.append(self._pace.clock() - started)
                rest = max(median(costs) * REST_FACTOR, next_start - time.monotonic())
                with self._changed:
                    wanted = min(rest, self._pace.longest)
                    if self._changed.wait_for(lambda: self._is_stopped or not self._listeners, wanted):
                        self._forget()
                        return
        except RuntimeError:  # The broker has stopped, so it has no state any more.
            pass
        except Exception:  # A mistake in HMB. The streams end, so the pages connect again, and a new thread starts.
            LOGGER.exception("the state of the broker could not be collected for the web pages")
        with self._changed:
            self._forget()

    def _forget(self) -> None:
        """Delete the stored state, because the feed's thread ends now. The caller holds the lock.

        When the next page connects, the feed starts a new thread, which collects the whole state again.
        """
        self._thread, self._version, self._parts = None, 0, {}
        self._changes.clear()
        self._changed.notify_all()

    def _publish(self, parts: Parts) -> None:
        old = self._parts
        changed = {key: part for key, part in parts.items() if (was := old.get(key)) is not part and was != part}
        gone = [key for key in old if key not in parts]
        version = self._version + 1
        change = _event("change", version, changed, gone)
        with self._changed:
            self._parts, self._version = parts, version
            self._changes.append((version, change))
            self._changed.notify_all()


def _fields_of_part(part: Any) -> dict[str, Any]:
    """Return the fields of `part` as a dict.

    `part` is a partition, a group or another object in the broker's state. The dict of a partition does not contain
    the segments, because the feed sends each segment separately.
    """
    if isinstance(part, PartitionInfo):
        return {name: getattr(part, name) for name in PARTITION_FIELDS}
    return fields_of(part)


def _event(name: str, version: int, parts: Parts, gone: list[tuple[Any, ...]]) -> bytes:
    data = {"version": version, "set": list(parts.items()), "gone": gone}
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'), default=_fields_of_part)}\n\n".encode()
