"""The offset index: it maps an offset to a position in the segment's log file.

Without an index, a broker that reads from an offset would have to scan all earlier batches of the segment. The
segment's `.index` file contains one entry for about every `index.interval.bytes` bytes of the log, in the order of the
log:
    relative offset   int32   the last offset of a batch, minus the segment's base offset
    position          uint32  the byte in the .log file at which this batch starts

Example: a segment has the base offset 8021 and batches of 10 records and 1,000 bytes. The index has an entry
for about every 4,096 bytes. The first entry is for the batch at byte 5,000. This batch has the relative offsets
50 to 59, and the entry contains 59. A broker looks up offset 8100. Its relative offset is 8100 - 8021 = 79:
    relative offset   position
                 59       5000   <- the greatest entry at or below 79, so the scan of the log starts at byte 5,000
                109      10000
                159      15000

A look-up in the offset index uses binary search to find the greatest entry at or below the wanted offset. The broker
then scans the log from the position in this entry until it finds the batch. Because of this scan, the index need not
contain an entry for each batch.

The file of an offset index has no header and no checksum. If it is damaged, the broker rebuilds it from the log. The
broker also rebuilds a file that ends with zeros. Such a file can come from Kafka, because Kafka first fills the file
with zeros, and cuts the unused zeros off only when it closes the segment.

Source: Juchli and Wolf's thesis, chapter 9.5.3, "Storage Format"; Kafka's `OffsetIndex`.
"""

from __future__ import annotations

import struct
import sys
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from hmb.protocol.enums import INT32_MAX
from hmb.storage.files.sorted_entries import SegmentIndex

MAX_RELATIVE_OFFSET = INT32_MAX  # greatest distance of an offset from the base offset of its segment
MAX_POSITION = INT32_MAX  # the highest position (bytes) that Kafka can read: in Kafka, the field is signed


class OffsetPosition(NamedTuple):
    """The last offset of a batch, and the byte in the .log file at which the batch starts."""

    offset: int
    position: int


class OffsetIndex(SegmentIndex[OffsetPosition]):
    """The `.index` file of one segment. Each entry has 8 bytes: a relative offset and a position.

    Invariants:

    - Each entry has a greater relative offset and a greater position than the entry before it.
    - Both numbers of an entry are greater than 0, because the first batch of a segment gets no entry. An entry of
      zeros is therefore invalid. (Kafka fills the end of an index file with zeros.)
    - `last` is the last entry of the file, or (base offset, 0) if the index is empty.
    """

    SUFFIX = ".index"
    ENTRY = struct.Struct(">iI")  # The position is unsigned. If its highest bit flips, a read finds it too large.
    KEY = struct.Struct(">i")  # The key is the relative offset.

    def _entry(self, fields: tuple[int, ...] | None) -> OffsetPosition:
        relative_offset, position = fields or (0, 0)  # without an entry: the start of the segment
        return OffsetPosition(self.base_offset + relative_offset, position)

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Raises OSError."""
        self._append(offset - self.base_offset, position)
        self._last = OffsetPosition(offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the last entry at or below `offset`, or (base offset, 0) if no such entry exists.

        A search takes O(log n) steps for n entries.
        """
        last = self._last
        if offset >= last.offset:  # A consumer without lag reads after the last entry, so its look-up needs no search.
            return last
        return self._entry(self._search(bisect_right, offset - self.base_offset)[1])

    def at_or_after(self, position: int) -> OffsetPosition | None:
        """Return the first entry whose position is `position` or greater, or None if no such entry exists."""
        if position > self._last.position:
            return None
        entries = range(self.entries)
        number = bisect_left(entries, position, key=self._position)
        found = self._fields(number) if number < len(entries) else None
        return None if found is None else self._entry(found)

    def _position(self, number: int) -> int:
        """Return the position that is stored in the index entry with this number.

        If the index file was cut and has lost the entry, return `sys.maxsize`. This number is greater than every
        position, so the caller's binary search continues with the earlier entries.
        """
        fields = self._fields(number)
        return sys.maxsize if fields is None else fields[1]

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        relative_offset, position = fields
        return relative_offset > 0 and position > 0
