"""The time index: from a timestamp to an offset, sparsely.

A segment's `.timeindex` file holds entries of 12 bytes, in the order of the log::

    timestamp         int64   the greatest timestamp in the segment so far, in ms
    relative offset   int32   last offset of the batch that brought it, less the segment's base offset

An entry `(t, o)` says: no record up to `o` is younger than `t`.  So a search for the first record at or after a time
can start at the greatest entry below that time.  Entries are written together with those of the offset index, and once
more when the segment is closed, so that the last entry always tells the segment's greatest timestamp.

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
    FIRST_FIELD = struct.Struct(">q")

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        found = self._found.last if self._found else None
        self._last = self._entry(*found) if found else TimestampOffset(NO_TIMESTAMP, base_offset)

    def __getitem__(self, number: int) -> TimestampOffset:
        return self._entry(*self._fields(number))

    def _entry(self, timestamp: int, relative_offset: int) -> TimestampOffset:
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

    @property
    def last(self) -> TimestampOffset:
        """The segment's greatest timestamp that is indexed; (-1, base offset) where none is."""
        return self._last

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless it is not younger than the last one (then it would tell nothing new)."""
        if timestamp > self._last.timestamp:
            self._append(timestamp, offset - self.base_offset)
            self._last = TimestampOffset(timestamp, offset)

    def lookup(self, timestamp: int) -> int:
        """An offset at or before the first record that is not older than `timestamp`.  O(log entries)."""
        entries = self.entries
        number = bisect_left(range(entries), timestamp, key=self._key(entries)) - 1 if entries else -1
        return self[number].offset if number >= 0 else self.base_offset

    def clear(self) -> None:
        super().clear()
        self._last = TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        return fields[0] > 0
