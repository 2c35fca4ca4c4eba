"""The time index: it maps a timestamp to an offset.

A client may ask for the first record at or after a time (ListOffsets). Timestamps need not grow in a log, so a binary
search in the log itself is not possible. The index makes it possible. A segment's `.timeindex` file holds entries of 12
bytes, in the order of the log::

    timestamp         int64   the greatest timestamp in the segment so far, in ms
    relative offset   int32   the last offset of the batch with that timestamp, minus the segment's base offset

An entry `(t, o)` means: no record at or below offset `o` has a timestamp greater than `t`. So a search for the first
record at or after a time starts at the greatest entry below that time. An entry is written together with an entry of
the offset index. One more is written when the segment is closed, so that the last entry has the segment's greatest
timestamp.

Source: KIP-33; Kafka's `TimeIndex`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from hmb.records import NO_TIMESTAMP
from hmb.storage.offset_index import IndexFile


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    """`.timeindex`: entries of 12 bytes, `timestamp: int64, relative offset: int32`; timestamps and offsets grow."""

    ENTRY = struct.Struct(">qi")
    KEY = struct.Struct(">q")  # The key is the timestamp.

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._last = self._entry(self._found.last if self._found else None)

    def _entry(self, fields: tuple[int, ...] | None) -> TimestampOffset:
        timestamp, relative_offset = fields or (NO_TIMESTAMP, 0)  # the start of the segment
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

    @property
    def last(self) -> TimestampOffset:
        """The last entry, with the greatest timestamp; (-1, base offset) if the index is empty."""
        return self._last

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry if its timestamp is greater than that of the last entry. Raises OSError."""
        if timestamp > self._last.timestamp:
            self._append(timestamp, offset - self.base_offset)
            self._last = TimestampOffset(timestamp, offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the greatest entry below `timestamp`. All records up to its offset are older. O(log entries).

        If no such entry exists, return (-1, base offset).
        """
        return self._entry(self._search(bisect_left, timestamp)[1])

    def clear(self) -> None:
        super().clear()
        self._last = self._entry(None)

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        return fields[0] > 0
