"""Writes the logs of thousands of partitions, and measures how long a broker with these logs takes to start.

Each partition has one segment with 20 batches of 10 records. The start time of a broker is the time from the
launch of its process to its first response. A part of this time is the start of Python itself. To show how long
this part is, the benchmark also starts a broker with only one partition. Such a broker spends most of its start
time on Python.

The goals are for a broker with 2,000 partitions. It should start within 2 s, and use at most 100 MB of resident
memory. It should not have more open files than `OPEN_FILES` allows (files/virtual.py). The command `hmb bench
growth --of partitions` measures the start time, the memory and the number of open files.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from hmb.protocol.topics import TopicPartition
from hmb.records import Record, RecordBatch, TimestampType, encode_batch
from hmb.storage.config import LogConfig
from hmb.storage.log_manager import LogManager, NewLog

from ..peers import Hmb, resident_bytes

BATCHES = 20
TOPIC = "many"
TIMESTAMP = 1_700_000_000_000  # ms


@dataclass(frozen=True)
class StartCost:
    """The time, the memory and the open files of one start of a broker."""

    seconds: float  # the time from the start of the process to the first response
    resident_bytes: int
    open_files: int


def write(data_dir: Path, count: int) -> None:
    """Write the logs of one topic with `count` partitions into a data directory."""
    records = [Record(i, TIMESTAMP, None, bytes(100), (), TimestampType.CREATE_TIME) for i in range(10)]
    batch = RecordBatch.parse(encode_batch(records))
    logs = LogManager(data_dir)
    logs.load({}, LogConfig())
    topic_id = uuid.uuid4()
    for log in logs.create_all([NewLog(TopicPartition(TOPIC, n), LogConfig(), topic_id) for n in range(count)]):
        for _ in range(BATCHES):
            log.append(batch)
    logs.close()


def start(broker: Hmb) -> StartCost:
    """Start a broker, measure the cost of the start, and stop the broker."""
    started = time.perf_counter()
    broker.start()
    seconds = time.perf_counter() - started
    open_files = sum(1 for _ in Path(f"/proc/{broker.pid}/fd").iterdir())
    cost = StartCost(seconds, resident_bytes(broker.pid), open_files)
    broker.stop()
    return cost
