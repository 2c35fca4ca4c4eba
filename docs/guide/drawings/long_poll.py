"""The drawing of the chapter on the long poll: a Fetch that waits, and the append that wakes it."""

from __future__ import annotations

import threading
import time
from typing import Any

from drawing import Drawing
from sequence import Lane, Sequence
from tracing import Event, Locals, Watched, add_calls, traced, wait_for_calls

import hmb
from hmb.broker.handlers import fetch, produce
from hmb.broker.lifecycle import BrokerServer
from hmb.client import TopicPartition
from hmb.protocol.primitives import part_size
from hmb.storage.log import Log
from hmb.storage.watchers import Watcher, Watchers

WAITER, APPENDER, LOG = "Fetch's thread", "Produce's thread", "log weather-0"
PAUSE = 0.4  # seconds between the start of the wait and the Produce
LIMIT = 10.0  # seconds, the time limit of the Fetch


def of_log(variables: Locals) -> str:
    return LOG if variables["self"].directory.name == "weather-0" else ""


def read_reply(value: Any) -> str:
    size = 0 if value is None or value.records is None else part_size(value.records)
    return f"{size} bytes"


WATCHED = [
    Watched(fetch.handle, WAITER, "Fetch, limit 10 s", caller="consumer", reply="records", tone="green"),
    Watched(Watchers.add, LOG, "add watcher"),
    Watched(Log.read, of_log, "read", reply=read_reply),
    Watched(Watcher.wait, WAITER, "wait", waits=True),
    Watched(produce.handle, APPENDER, "Produce", caller="producer", reply="offset", tone="blue"),
    Watched(Log.append, of_log, "append", tone="blue"),
    Watched(Watcher.wake, WAITER, "wake", tone="violet"),
]


def long_poll() -> Drawing:
    """Draw a Fetch that waits at the end of a log until a producer appends a record.

    The function runs a broker and records its calls. The drawing shows the recorded calls.
    """
    with traced(WATCHED) as events, BrokerServer() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("weather", b"rain").result()
        consumer = hmb.SimpleConsumer(broker.bootstrap_servers)
        consumer.fetch("weather", 0, offset=0)
        events.clear()
        log = broker.context.topics.log_of(TopicPartition("weather", 0))
        reading = threading.Thread(target=consumer.fetch, args=("weather", 0, 1), kwargs={"max_wait": LIMIT})
        reading.start()
        wait_for_calls(events, Watcher.wait, 1)
        time.sleep(PAUSE)
        producer.send("weather", b"fog").result()
        reading.join()
        consumer.close()
        assert log.log_end_offset == 2
    waited = sum(seconds_of(events, Watcher.wait))
    sequence = Sequence(
        Lane("consumer", "green"),
        Lane(WAITER, "amber"),
        Lane(LOG, "amber"),
        Lane(APPENDER, "amber"),
        Lane("producer", "blue"),
        gap=176,
    )
    add_calls(sequence, without_repetitions(events))
    return sequence.drawing(f"A Fetch waits {waited:.1f} seconds in the broker, until a producer appends a record.")


def seconds_of(events: list[Event], function: Any) -> list[float]:
    """Return how many seconds each recorded call of a function took."""
    moments = [event.moment for event in events if event.watched.function is function]
    return [end - begin for begin, end in zip(moments[::2], moments[1::2], strict=True)]


def without_repetitions(events: list[Event]) -> list[Event]:
    """Return all events except the second and later calls of `Watchers.add`.

    The first call of `Watchers.add` makes the Fetch wait for new records in the log. The later calls make the Fetch
    wait for other things, such as the stop of the broker. The drawing does not need these later calls.
    """
    added = [event for event in events if event.watched.function is Watchers.add]
    return [event for event in events if event not in added[2:]]
