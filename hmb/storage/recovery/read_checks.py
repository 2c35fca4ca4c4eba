"""Finds damaged batches while the broker runs, by checking batches that clients fetch repeatedly.

In a fetch, the kernel sends the records from the file to the client, and the broker does not read them. So only the
client notices a batch with a wrong CRC. The client cannot continue, and fetches the same offset again and again.

Repeated reads of an offset can have two causes: the batch is damaged, or several consumers read it. The broker
counts the reads of each offset, and checks the batch only at reads 2, 4, 8, 16, and so on.

When the broker checks a read, it verifies two things before it sends the records: the first batch is intact,
and the file contains all bytes of the read. If a check fails, the log repairs the segment (repair.py), and
reads again.
"""

from __future__ import annotations

import os
import threading

from hmb.protocol.errors import KafkaError
from hmb.records import parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.files.virtual import FileRegion
from hmb.storage.segment import DamagedSegment, Segment

OFFSETS_KEPT = 64  # number of offsets whose reads are counted; a new offset replaces the one that was added first


class RepeatedReads:
    """Counts how many reads of a log begin at each offset. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the counts; a thread that holds it takes no other lock
        self._counts: dict[int, int] = {}  # offset -> number of reads; the offset that was added first comes first

    def is_due(self, offset: int) -> bool:
        """Count one read that begins at `offset`. Return whether the caller should check the batch at this offset."""
        with self._lock:
            count = self._counts.get(offset, 0) + 1
            self._counts[offset] = count
            if len(self._counts) > OFFSETS_KEPT:
                del self._counts[next(iter(self._counts))]
        return count > 1 and count & (count - 1) == 0


def check_begin(segment: Segment, region: FileRegion) -> None:
    """Check the first batch of a read. `region` is the part of the segment's file that the broker will send.

    Raises DamagedSegment if the batch is damaged, or if the file ends before the end of `region`. Raises OSError.
    """
    end = region.position + region.size
    length = os.fstat(region.file.open().fileno()).st_size
    if length < end:
        raise DamagedSegment(segment, f"the file has {length} bytes and should have {end}")
    try:
        header = parse_batch(region.file.read(HEADER_PEEK, region.position))
        parse_batch(region.file.read(header.size, region.position)).check()
    except KafkaError as error:
        raise DamagedSegment(segment, f"position {region.position}: {error.message}") from error
