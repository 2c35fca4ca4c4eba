"""A log of many GB that uses little disk space, to compare appends and reads in small and large logs.

The files are sparse. Each log has ten segments, or one segment for each GB, of batches of 256 KB. Only the headers of
the batches are written, because a log reads nothing else to find a batch, to return it, and to append::

    | header, 61 bytes | hole of 262,083 bytes | header | hole | ...

The benchmark reads at random offsets. The offsets are the same in each round, so that the headers are in the page
cache. The fastest of seven rounds counts. A large log should be slower for only two reasons: about ten more steps of a
binary search, and headers and indexes that do not fit into the processor's caches. `hmb bench growth --of log` measures
this cost.
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
CALLS = 2_000  # calls in one round
RECORDS = 10  # records in one batch
BATCH_BYTES = 262_144
READ_BYTES = 400_000
CONFIG = LogConfig()
TIMESTAMP = 1_700_000_000_000  # ms


class CallCosts(NamedTuple):
    """How long a call of each kind takes, in us: a read at a random offset, a read at the end, and an append."""

    read: float
    read_at_end: float
    append: float


def batch_at(offset: int) -> bytes:
    """Return a batch of ten records with this base offset."""
    records = [Record(i, TIMESTAMP, None, bytes(100), (), TimestampType.CREATE_TIME) for i in range(RECORDS)]
    return encode_batch(records, base_offset=offset)


def write(directory: Path, size: int) -> Log:
    """Write and open a log of `size` bytes."""
    base_offset = 0
    segments = max(SEGMENTS, size // CONFIG.segment_bytes)
    for _ in range(segments):
        base_offset = _write_segment(Segment(directory, base_offset, CONFIG), size // segments // BATCH_BYTES)
    return Log(directory, CONFIG, clean=True, recovery_point=base_offset)


def _write_segment(segment: Segment, batches: int) -> int:
    """Write the headers of the batches and an index entry for each; return the next offset."""
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
    """Call a function in several rounds. Return the time of one call (us) in the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - started)
    return best / CALLS * 1e6


def measure(size: int) -> CallCosts:
    """Measure a read, a read at the end and an append in a log of `size` bytes."""
    with tempfile.TemporaryDirectory(prefix="hmb-sparse-") as temporary:
        directory = Path(temporary) / "events-0"
        directory.mkdir()
        log = write(directory, size)
        offsets = itertools.cycle(random.Random(0).choices(range(log.log_end_offset), k=CALLS))
        batch = memoryview(batch_at(0))
        read = fastest(lambda: log.read(next(offsets), READ_BYTES))
        read_at_end = fastest(lambda: log.read(log.log_end_offset - 1, READ_BYTES))
        return CallCosts(read, read_at_end, fastest(lambda: log.append(batch)))
