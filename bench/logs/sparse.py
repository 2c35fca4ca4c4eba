"""A log of many GB that uses little disk space. A benchmark measures appends and reads in this log.

The files are sparse: most of their bytes were never written, and use no disk space. A log of up to 10 GB has ten
segments. A larger log has one segment for each GB.

Each batch has 256 KB, but the benchmark writes only the header of the batch. The log never looks at the other bytes: it
finds a batch by the headers, returns the position of the batch, and appends new batches at the end of the file:
    | header, 61 bytes | 262,083 bytes that are not written | header | ...

The benchmark measures reads and appends in seven rounds each. Its result is the time of the fastest round. All rounds
read at the same random offsets. So after the first round, the headers at these offsets are in the page cache.

A large log should be only a little slower than a small log. There are two reasons why it is slower: a binary search
needs about ten more steps, and the headers and indexes do not fit into the processor's caches. The command `hmb bench
growth --of log` measures the difference.
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

from hmb.records import Record, RecordBatch, TimestampType, encode_batch
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.segment import Segment

SEGMENTS = 10
ROUNDS = 7
CALLS = 2_000  # the number of calls in one round
RECORDS = 10  # the number of records in one batch
BATCH_BYTES = 262_144
READ_BYTES = 400_000
CONFIG = LogConfig()
TIMESTAMP = 1_700_000_000_000  # ms


class CallCosts(NamedTuple):
    """The time (us) of one read at a random offset, of one read at the end of the log, and of one append."""

    read: float
    read_at_end: float
    append: float


def batch_at(offset: int) -> bytes:
    """Return a batch of ten records. The first record has the offset `offset`."""
    records = [Record(i, TIMESTAMP, None, bytes(100), (), TimestampType.CREATE_TIME) for i in range(RECORDS)]
    return encode_batch(records, base_offset=offset)


def write(directory: Path, size: int) -> Log:
    """Write the files of a log of `size` bytes, open the log, and return it."""
    base_offset = 0
    segments = max(SEGMENTS, size // CONFIG.segment_bytes)
    for _ in range(segments):
        base_offset = _write_segment(Segment(directory, base_offset, CONFIG), size // segments // BATCH_BYTES)
    return Log(directory, CONFIG, clean=True, recovery_point=base_offset)


def _write_segment(segment: Segment, batches: int) -> int:
    """Write a header and an index entry for each batch of a segment. Return the offset after the last record."""
    offset, rest_of_header = segment.base_offset, batch_at(0)[12:61]
    segment.file.truncate(batches * BATCH_BYTES)
    for number in range(batches):
        header = struct.pack(">qi", offset, BATCH_BYTES - 12) + rest_of_header
        segment.file.write([header], number * BATCH_BYTES)
        if number:
            segment.offset_index.append(offset + RECORDS - 1, number * BATCH_BYTES)
        offset += RECORDS
    segment.max_timestamp, segment.offset_of_max_timestamp = TIMESTAMP, segment.base_offset
    segment.close()
    return offset


def fastest(call: Callable[[], object]) -> float:
    """Call a function CALLS times in each of ROUNDS rounds. Return the time of one call (us) in the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - started)
    return best / CALLS * 1e6


def measure(size: int) -> CallCosts:
    """Write a log of `size` bytes in a temporary directory, and measure reads and appends in this log."""
    with tempfile.TemporaryDirectory(prefix="hmb-sparse-") as temporary:
        directory = Path(temporary) / "events-0"
        directory.mkdir()
        log = write(directory, size)
        offsets = itertools.cycle(random.Random(0).choices(range(log.log_end_offset), k=CALLS))
        batch = RecordBatch.parse(batch_at(0))
        read = fastest(lambda: log.read(next(offsets), READ_BYTES))
        read_at_end = fastest(lambda: log.read(log.log_end_offset - 1, READ_BYTES))
        return CallCosts(read, read_at_end, fastest(lambda: log.append(batch)))
