"""What many partitions cost a broker: the start after a clean stop and after a kill, memory, open files.

    python -m hmb.bench.partitions                  # 2000 partitions, one segment with some records each
    python -m hmb.bench.partitions --count 10000

The start is measured from outside, from the start of the process to the first answer; the start of a broker without
partitions beside it shows how much of it is Python's own.  Goals for 2,000: 2 s, 100 MB resident, files bounded.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hmb.records import Record, TimestampType, encode_batch
from hmb.storage.checkpoints import TopicPartition
from hmb.storage.config import LogConfig
from hmb.storage.log_manager import CLEAN_SHUTDOWN, LogManager

from .peers import Hmb, resident_bytes

BATCHES = 20
TOPIC = "many"


@dataclass(frozen=True)
class Start:
    seconds: float
    resident: int  # bytes
    files: int

    def __str__(self) -> str:
        return (
            f"{self.seconds:5.2f} s to the first answer, {self.resident / 1e6:.0f} MB resident, {self.files} open files"
        )


def fill(directory: Path, count: int) -> None:
    """Write the logs as a broker does, but without one."""
    records = [Record(i, 1_700_000_000_000, None, bytes(100), (), TimestampType.CREATE_TIME) for i in range(10)]
    batch = memoryview(encode_batch(records))
    logs = LogManager(directory)
    logs.load({}, LogConfig())
    for log in logs.create_all([TopicPartition(TOPIC, n) for n in range(count)], LogConfig(), uuid.uuid4()):
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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Start a broker with many partitions.")
    parser.add_argument("--count", type=int, default=2_000, help="partitions (default: 2000)")
    count = parser.parse_args(arguments).count
    broker = Hmb()
    try:
        print(f"{'no partitions:':<32} {start(broker)}", flush=True)
        fill(broker.data_dir, count)
        print(f"{f'{count} partitions, clean:':<32} {start(broker)}", flush=True)
        (broker.data_dir / CLEAN_SHUTDOWN).unlink()
        print(f"{f'{count} partitions, after a kill:':<32} {start(broker)}", flush=True)
    finally:
        broker.stop()
        broker.remove()


if __name__ == "__main__":
    main()
