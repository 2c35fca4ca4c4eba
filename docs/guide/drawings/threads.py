"""The drawings of the chapter on threads and locks: the threads of a broker, and the locks that two requests take."""

from __future__ import annotations

import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from drawing import Drawing, DrawingError, Tone

import hmb
from hmb.broker.lifecycle import BrokerServer

sys.path.insert(0, str(Path(__file__).parents[3]))  # so that Python can import the package `tests`

from tests.lock_order import LockEvent, Name, recorded_order

LOCKS = Path(__file__).parents[2] / "tour" / "locks.md"
ROW = re.compile(r"^\| (\d+) \| `([\w/.]+)` \| `(\w+)` \| ([^|]+?) \|", re.MULTILINE)
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "20",
    "log.retention.check.interval.ms": "20",
    "log.cleaner.backoff.ms": "20",
}
PURPOSES = {  # the first part of a thread's name -> what the thread does
    "accept": "accepts clients",
    "connection": "serves one client",
    "deadlines": "closes slow connections",
    "group-timer": "wakes groups",
    "housekeeper": "deletes, syncs, compacts",
}
# Each key is the beginning of a source file's path. Its value is the object that the locks in that source file protect.
OBJECTS = {
    "broker/topics": "topics",
    "storage/log_manager": "list of logs",
    "coordinator/journal": "journal",
    "coordinator": "groups",
    "storage/files": "files",
    "storage": "one log",
    "broker": "clients",
}
COLUMNS = ("clients", "topics", "list of logs", "groups", "journal", "one log", "files")


def kind_of(name: str) -> str:
    return next((kind for kind in PURPOSES if name.startswith(kind)), "")


def object_of(file: str) -> str:
    return next(name for start, name in OBJECTS.items() if file.startswith(start))


def threads() -> Drawing:
    """Draw the threads of a broker, and the locks that each kind of thread took while two clients used the broker."""
    before = set(threading.enumerate())
    with pytest.MonkeyPatch.context() as patch:
        order = recorded_order(patch)
        with BrokerServer(config=SETTINGS) as broker, hmb.Producer(broker.bootstrap_servers, acks="all") as producer:
            producer.send("weather", b"rain").result()
            with hmb.Consumer(broker.bootstrap_servers, "weather", group="readers", offset="earliest") as consumer:
                while not consumer.poll(0.1):
                    pass
                consumer.commit()
                found = Counter(kind_of(thread.name) for thread in set(threading.enumerate()) - before)
    taken = {(kind_of(event.thread), object_of(event.lock[0])) for event in order.events if kind_of(event.thread)}
    locks = {kind: ", ".join(name for name in COLUMNS if (kind, name) in taken) or "nothing" for kind in PURPOSES}
    words = (f"{found[kind]} {kind}: {purpose}, takes locks of {locks[kind]}." for kind, purpose in PURPOSES.items())
    drawing = Drawing(930, 50 + 54 * len(PURPOSES), "The threads of a running broker. " + " ".join(words))
    left, wide = 360, 80
    for number, name in enumerate(COLUMNS):
        drawing.text(left + wide * (number + 0.5), 26, name, size=13)
    for number, (kind, purpose) in enumerate(PURPOSES.items()):
        y = 44 + 54 * number
        for copy in reversed(range(min(found[kind], 4))):
            tone: Tone = "violet" if kind == "connection" else "amber"
            drawing.box(8 + 5 * copy, y + 4 * copy, 130, 34, kind if copy == 0 else "", tone=tone)
        drawing.text(166, y + 14, f"{found[kind]} thread{'s' if found[kind] != 1 else ''}", anchor="start", size=13)
        drawing.text(166, y + 34, purpose, anchor="start", size=13)
        for column, name in enumerate(COLUMNS):
            is_taken = (kind, name) in taken
            drawing.box(
                left + wide * column + 4, y, wide - 8, 34, tone="violet" if is_taken else "plain", dashed=not is_taken
            )
    return drawing


def produce() -> Drawing:
    """Draw the locks that a thread holds while it handles one Produce with acks=all."""
    with pytest.MonkeyPatch.context() as patch:
        order = recorded_order(patch)
        with BrokerServer(config=SETTINGS) as broker, hmb.Producer(broker.bootstrap_servers, acks="all") as producer:
            producer.send("weather", b"rain").result()
            order.events.clear()
            producer.send("weather", b"fog").result()
            events = list(order.events)
    return bars(events, "The locks that one thread holds during a Produce with acks=all.")


def commit() -> Drawing:
    """Draw the locks that a thread holds while it handles one OffsetCommit."""
    with pytest.MonkeyPatch.context() as patch:
        order = recorded_order(patch)
        with BrokerServer(config=SETTINGS) as broker, hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("weather", b"rain").result()
            with hmb.Consumer(broker.bootstrap_servers, "weather", group="readers", offset="earliest") as consumer:
                while not consumer.poll(0.1):
                    pass
                order.events.clear()
                consumer.commit()
                events = list(order.events)
    return bars(events, "The locks that one thread holds during an OffsetCommit.")


def bars(events: Sequence[LockEvent], about: str) -> Drawing:
    """Draw which locks one thread holds, and when.

    Each event in `events` means that a thread has taken or released a lock. The drawing shows only one connection
    thread: the one with the most events. A connection thread serves one client.

    Each lock has a row, and each bar in the row shows when the thread holds the lock. The rows are in the same
    order as in the table of `locks.md`. `about` describes the drawing in one sentence.
    """
    numbers = {(file, lock): int(number) for number, file, lock, _ in ROW.findall(LOCKS.read_text(encoding="utf-8"))}
    mine = thread_with_most([event for event in events if event.lock in numbers])
    held = list(held_of(mine))
    rows = sorted({name for name, _, _ in held}, key=numbers.__getitem__)
    left, wide, high = 330, 400, 34
    words = ", ".join(f"{numbers[name]} {name[0]} {name[1]}" for name in rows)
    drawing = Drawing(left + wide + 12, 44 + high * len(rows), f"{about} The locks, in their order: {words}.")
    drawing.text(left, 20, "time", anchor="start", size=13)
    drawing.arrow((left + 40, 16), (left + wide, 16), tone="gray")
    step = wide / len(mine)
    for row, name in enumerate(rows):
        y = 34 + high * row
        drawing.text(8, y + 18, f"{numbers[name]:2}  {name[0]}  {name[1]}", anchor="start", size=13)
        for each, begin, end in held:
            if each == name:
                drawing.box(left + step * begin, y, step * (end - begin), high - 8, tone="violet")
    return drawing


def thread_with_most(events: Sequence[LockEvent]) -> list[LockEvent]:
    """Return the events of the connection thread that has the most events.

    A connection thread is a thread that serves one client. Raises DrawingError if no connection thread has an
    event.
    """
    counts = Counter(event.thread for event in events if kind_of(event.thread) == "connection")
    if not counts:
        raise DrawingError("no connection has taken a lock")
    (thread, _), *_ = counts.most_common(1)
    return [event for event in events if event.thread == thread]


def held_of(events: Sequence[LockEvent]) -> Iterator[tuple[Name, int, int]]:
    """Yield (lock, begin, end) for each period in which a thread holds a lock.

    All events in `events` belong to one thread. The thread takes the lock in the event `events[begin]`, and
    releases it in the event `events[end]`.
    """
    begins: dict[Name, int] = {}
    for number, event in enumerate(events):
        if event.is_taken:
            begins[event.lock] = number
        elif event.lock in begins:
            yield event.lock, begins.pop(event.lock), number
