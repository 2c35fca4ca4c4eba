"""Readers that cannot get past a damaged batch, and how a running broker notices them.

A fetch does not look at the records: the kernel sends them from the file to the client, and the client checks the CRC.
So the broker does not know whether a batch is still intact. A client that finds a wrong CRC does not get past the
batch, and asks for the same offset again. A client that gets past the batch never asks for it again.

So when a read begins at the same offset as an earlier one, the broker checks the first batch before it sends it. It
also checks that the file has all bytes of the region. If the batch or the length is wrong, the log repairs the segment
(repair.py), and the client gets the intact batches.

Several consumers may read the same offsets, and then each of them except the first repeats a read. So the broker checks
only the second, the fourth, the eighth read of an offset, and so on. A reader that cannot get past a batch repeats its
read until the broker checks the batch.
"""

from __future__ import annotations

import os
import threading

from hmb.protocol.errors import KafkaError
from hmb.records import parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.files.virtual import FileRegion
from hmb.storage.segment import DamagedSegment, Segment

OFFSETS_KEPT = 64  # the number of offsets that have a count; the oldest offset is dropped first


class RepeatedReads:
    """Counts how often the reads of a log began at the same offset. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the counts; held for a moment, no other lock is taken under it
        self._counts: dict[int, int] = {}  # number of reads by offset, in the order in which the offsets were added

    def is_due(self, offset: int) -> bool:
        """Count a read that found records from `offset` on. Return whether its first batch should be checked."""
        with self._lock:
            count = self._counts.get(offset, 0) + 1
            self._counts[offset] = count
            if len(self._counts) > OFFSETS_KEPT:
                del self._counts[next(iter(self._counts))]
        return count > 1 and count & (count - 1) == 0


def check_begin(segment: Segment, region: FileRegion) -> None:
    """Check the length of the file, and the first batch of a region. Raises DamagedSegment, OSError."""
    end = region.position + region.size
    length = os.fstat(region.file.open().fileno()).st_size
    if length < end:
        raise DamagedSegment(segment, f"the file has {length} bytes and should have {end}")
    try:
        header = parse_batch(region.file.read(HEADER_PEEK, region.position))
        parse_batch(region.file.read(header.size, region.position)).check()
    except KafkaError as error:
        raise DamagedSegment(segment, f"position {region.position}: {error.message}") from error
