"""The time index: it maps a timestamp to an offset.

A client can ask for the first record with a timestamp at or after a certain time (ListOffsets). The timestamps
in a log are not sorted: a record can have an earlier timestamp than the record before it. A binary search in
the log is therefore not possible. In the time index, each timestamp is greater than the previous one, so a
binary search works. A segment's `.timeindex` file contains entries of 12 bytes, in the order of the log:
    timestamp         int64   the greatest timestamp in the segment so far, in ms
    relative offset   int32   the last offset of the batch with that timestamp, minus the segment's base offset

An entry `(t, o)` means that no record of the segment up to offset `o` has a timestamp greater than `t`. For
example, the entries are `(1000, 50)` and `(2000, 120)`, and a client asks for the time 1500. All records up to
offset 50 are older, so the broker scans the log from offset 50.

About every `index.interval.bytes` bytes, the broker adds an entry to the offset index. If the segment then has a new
greatest timestamp, the broker also adds an entry to the time index. When the broker closes the segment, it
ensures that the time index ends with an entry for the greatest timestamp.

Source: KIP-33; Kafka's `TimeIndex`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import NamedTuple

from hmb.records import NO_TIMESTAMP
from hmb.storage.files.sorted_entries import SegmentIndex


class TimestampOffset(NamedTuple):
    """A timestamp (ms since 1970, or -1 if missing), and an absolute offset (not relative to a segment)."""

    timestamp: int
    offset: int


class TimeIndex(SegmentIndex[TimestampOffset]):
    """The `.timeindex` file of one segment. An entry has 12 bytes.

    Each entry has a greater timestamp and a greater offset than the entry before it. `last` is the entry with the
    greatest timestamp, or (-1, base offset) if the index is empty.
    """

    SUFFIX = ".timeindex"
    ENTRY = struct.Struct(">qi")
    KEY = struct.Struct(">q")  # The key is the timestamp.

    def _entry(self, fields: tuple[int, ...] | None) -> TimestampOffset:
        timestamp, relative_offset = fields or (NO_TIMESTAMP, 0)  # without an entry: the start of the segment
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is greater than the timestamp of the last entry. Raises OSError."""
        if timestamp > self._last.timestamp:
            self._append(timestamp, offset - self.base_offset)
            self._last = TimestampOffset(timestamp, offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the last entry with a timestamp below `timestamp` (ms), or (-1, base offset) if none exists.

        If an entry exists, all records up to its offset are older than `timestamp`. So a scan for the timestamp can
        start at the returned offset. For n entries, the look-up takes O(log n) steps.
        """
        return self._entry(self._search(bisect_left, timestamp)[1])

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        return fields[0] > 0
