"""What an append and a read cost when the log is small and when it is large.

The logs are sparse files, which take little disk.  Each has ten segments, or one for each GB, of batches of 256 KB, of
which only the headers were written: a broker looks at nothing else to look up, to read and to append.  The reads go to
offsets by chance, the same in each of several rounds, so that they are in the page cache; the fastest round counts.
Goal: the large log is no slower, but for some ten more steps of a binary search, and for headers and indexes that leave
the processor's caches.  `hmb bench growth --of log` (growth.py) measures it.
"""

from __future__ import annotations

import itertools
import random
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hmb.records import Record, TimestampType, encode_batch
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.segment import Segment

SEGMENTS = 10
ROUNDS = 7
CALLS = 2_000  # in a round
RECORDS = 10  # in a batch
BATCH_BYTES = 262_144
READ_BYTES = 400_000
CONFIG = LogConfig()
NOW = 1_700_000_000_000  # ms


def batch_at(offset: int) -> bytes:
    records = [Record(i, NOW, None, bytes(100), (), TimestampType.CREATE_TIME) for i in range(RECORDS)]
    return encode_batch(records, base_offset=offset)


def make(directory: Path, size: int) -> Log:
    """A log of `size` bytes."""
    base_offset = 0
    segments = max(SEGMENTS, size // CONFIG.segment_bytes)
    for _ in range(segments):
        base_offset = _fill(Segment(directory, base_offset, CONFIG), size // segments // BATCH_BYTES)
    return Log(directory, CONFIG, clean=True, recovery_point=base_offset)


def _fill(segment: Segment, batches: int) -> int:
    """Headers of batches, holes for their records, and an index entry each; returns the next offset."""
    offset, rest_of_header = segment.base_offset, batch_at(0)[12:61]
    segment.file.truncate(batches * BATCH_BYTES)
    for number in range(batches):
        header = struct.pack(">qi", offset, BATCH_BYTES - 12) + rest_of_header
        segment.file.write([header], number * BATCH_BYTES)
        if number:
            segment.offset_index.append(offset + RECORDS - 1, number * BATCH_BYTES)
        offset += RECORDS
    segment.max_timestamp, segment.offset_of_max_timestamp = NOW, segment.base_offset
    segment.close()
    return offset


def fastest(call: Callable[[], object]) -> float:
    """us a call."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


class Costs(NamedTuple):
    """us a call."""

    read: float
    read_at_end: float
    append: float


def measure(size: int) -> Costs:
    with tempfile.TemporaryDirectory(prefix="hmb-log-size-") as temporary:
        directory = Path(temporary) / "events-0"
        directory.mkdir()
        log = make(directory, size)
        offsets = itertools.cycle(random.Random(0).choices(range(log.log_end_offset), k=CALLS))
        batch = memoryview(batch_at(0))
        read = fastest(lambda: log.read(next(offsets), READ_BYTES))
        tail = fastest(lambda: log.read(log.log_end_offset - 1, READ_BYTES))
        return Costs(read, tail, fastest(lambda: log.append(batch)))
