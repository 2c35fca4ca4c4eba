"""Writes a log with about ten records for each key, for a benchmark of compaction.

Each record has a random key and a value of 100 bytes. A batch contains 16 KB of records before compression, and
a segment has 100 MB. A segment is *dirty* until a cleaner has compacted it. A cleaner never compacts the active
segment. The benchmark therefore writes only one record into the active segment, so a cleaner can compact all
other records:
    00000000000000000000.log   100 MB    dirty
    00000000000000820000.log   100 MB    dirty
    ...
    00000000000008264462.log   1 record  active

The cleaner stores an offset in the file `cleaner-offset-checkpoint`. All records below this offset are compacted.

Compaction is complete when the file `cleaner-offset-checkpoint` contains `Original.end`, the base offset of the
active segment.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from hmb.records import Codec, Record, RecordBatch, encode_batch
from hmb.storage.config import LogConfig
from hmb.storage.dump.segment_files import walk
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimestampOffset
from hmb.units import now_ms

from .. import peers

VALUE_BYTES, BATCH_BYTES, SEGMENT_BYTES = 100, 16_384, 100_000_000
RECORD_BYTES = VALUE_BYTES + 21  # the size of an encoded record, whose key has 13 bytes
RECORDS_PER_KEY = 10
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES)


@dataclass(frozen=True)
class Original:
    """The log that the benchmark writes once, in a directory of its own. Each run compacts a copy of this log."""

    directory: Path
    size: int  # the size (bytes) of all segments except the active segment
    keys: int  # the number of different keys
    end: int  # the base offset of the active segment


def write(directory: Path, size: int, codec: Codec) -> Original:
    """Write a log with about `size` bytes of records before compression.

    Two calls with the same size write the same keys and values.
    """
    directory.mkdir()
    timestamp = now_ms()
    generator = random.Random(size)
    values = [generator.randbytes(VALUE_BYTES // 2) + b"." * (VALUE_BYTES // 2) for _ in range(1_000)]
    count = size // RECORD_BYTES
    keys = [f"user-{generator.randrange(count // RECORDS_PER_KEY):08d}".encode() for _ in range(count)]
    in_batch = BATCH_BYTES // RECORD_BYTES
    segments = [Segment(directory, 0, CONFIG)]
    for offset in range(0, count, in_batch):
        records = [Record(0, timestamp, key, generator.choice(values)) for key in keys[offset : offset + in_batch]]
        _append(segments, offset, records, codec)
    dirty_bytes = sum(segment.size for segment in segments)
    segments.append(Segment(directory, count, CONFIG))
    _append(segments, count, [Record(0, timestamp, b"last", b"")], codec)
    for segment in segments:
        segment.close()
    return Original(directory, dirty_bytes, len(set(keys)), count)


def _append(segments: list[Segment], offset: int, records: list[Record], codec: Codec) -> None:
    batch = encode_batch(records, base_offset=offset, codec=codec, leader_epoch=0)
    last = TimestampOffset(records[0].timestamp, offset + len(records) - 1)
    if segments[-1].is_full(len(batch), last.offset, last.timestamp):
        segments.append(Segment(segments[0].path.parent, offset, CONFIG))
    segments[-1].append([batch], last.offset, last)


def put(log: Path, directory: Path) -> None:
    """Replace the segments in the directory of a topic partition by copies of the segments in `log`.

    The caller must stop the broker first.
    """
    for path in directory.glob("0*"):
        path.unlink()
    shutil.copytree(log, directory, dirs_exist_ok=True)


def compacted_bytes(original: Original, directory: Path) -> int:
    """Return the size (bytes) of the compacted segments. Raises PeerFailed unless each key has exactly one record."""
    size = records = 0
    for path in sorted(directory.glob("*.log")):
        if int(path.stem) < original.end:
            with path.open("rb") as log:
                records += sum(at.batch.records_count for at in walk(log) if isinstance(at.batch, RecordBatch))
            size += path.stat().st_size
    if records != original.keys:
        raise peers.PeerFailed(f"the compacted log contains {records} records of {original.keys} keys")
    return size
