"""What many partitions cost a broker: the start after a clean stop and after a kill, memory, open files.

Each partition has one segment with some records.  The start is measured from outside, from the start of the process to
the first answer; that with one partition shows how much of it is Python's own.  Goals for 2,000: 2 s, 100 MB resident,
files bounded.  `hmb bench growth --of partitions` (growth.py) measures it.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from hmb.protocol.topics import TopicPartition
from hmb.records import Record, TimestampType, encode_batch
from hmb.storage.config import LogConfig
from hmb.storage.log_manager import LogManager, NewLog

from .peers import Hmb, resident_bytes

BATCHES = 20
TOPIC = "many"


@dataclass(frozen=True)
class Start:
    seconds: float
    resident: int  # bytes
    files: int


def fill(directory: Path, count: int) -> None:
    """Write the logs as a broker does, but without one."""
    records = [Record(i, 1_700_000_000_000, None, bytes(100), (), TimestampType.CREATE_TIME) for i in range(10)]
    batch = memoryview(encode_batch(records))
    logs = LogManager(directory)
    logs.load({}, LogConfig())
    topic_id = uuid.uuid4()
    for log in logs.create_all([NewLog(TopicPartition(TOPIC, n), LogConfig(), topic_id) for n in range(count)]):
        for _ in range(BATCHES):
            log.append(batch)
    logs.close()


def start(broker: Hmb) -> Start:
    """Start it, look, stop it."""
    begin = time.perf_counter()
    broker.start()
    seconds = time.perf_counter() - begin
    found = Start(seconds, resident_bytes(broker.pid), sum(1 for _ in Path(f"/proc/{broker.pid}/fd").iterdir()))
    broker.stop()
    return found
