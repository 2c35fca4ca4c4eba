"""The offset index: from an offset to a position in the segment's log file, sparsely.

A segment's `.index` file holds one entry for about every `index.interval.bytes` of log, in the order of the log::

    relative offset   int32   the indexed batch's last offset, less the segment's base offset
    position          int32   where that batch starts in the .log file, in bytes

A look-up finds the greatest entry at or below the wanted offset by binary search and leaves the rest to a short scan of
the log.  So the index can be small, may lack entries, and can always be made again from the log.  The file has no
header and no checksum; Kafka preallocates it with zeros and trims it when the segment is closed.

Invariants: relative offsets and positions grow strictly; the first batch of a segment is never indexed, hence no
relative offset is 0 (which tells Kafka's zero padding from an entry).

Source: thesis ch. 9.5.3 (storage format); Kafka's `OffsetIndex`.
"""

from __future__ import annotations

import mmap
import os
import struct
from bisect import bisect_right
from io import FileIO
from pathlib import Path
from typing import ClassVar, NamedTuple

from hmb.storage.files import open_file


class IndexFile:
    """A file of fixed-width entries: appended one by one, read by number through a memory map.

    Appends happen under the log's lock.  Readers take no lock: `entries` grows only after an entry is written whole,
    and a reader that finds its map too short makes itself a new one.
    """

    ENTRY: ClassVar[struct.Struct]

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.entries = path.stat().st_size // self.ENTRY.size if path.exists() else 0
        self._file: FileIO | None = None  # opened at the first append: a log that nobody writes to holds no descriptor
        self._map: mmap.mmap | None = None

    def is_sane(self) -> bool:
        """Whether the file may be trusted: it exists, holds whole entries, and is not padded with zeros at its end."""
        if not self.path.exists() or self.path.stat().st_size % self.ENTRY.size:
            return False
        return self.entries == 0 or self._is_sane_entry(self._fields(self.entries - 1))

    def clear(self) -> None:
        """Forget all entries, before they are made again from the log."""
        self._map = None
        self.entries = 0
        self._open().truncate(0)

    @property
    def size(self) -> int:
        return self.entries * self.ENTRY.size

    def flush(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file; it opens again by itself when it is needed."""
        self._map = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        raise AssertionError("each index says what its entries look like")

    def _append(self, *fields: int) -> None:
        os.pwrite(self._open().fileno(), self.ENTRY.pack(*fields), self.size)
        self.entries += 1

    def _open(self) -> FileIO:
        if self._file is None:
            self._file = open_file(self.path)
        return self._file

    def _fields(self, number: int) -> tuple[int, ...]:
        end = (number + 1) * self.ENTRY.size
        view = self._map
        if view is None or len(view) < end:
            with open_file(self.path) as file:
                view = self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self.ENTRY.unpack_from(view, end - self.ENTRY.size)


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(IndexFile):
    """`.index`: entries of 8 bytes, `relative offset: int32, position: int32`."""

    ENTRY = struct.Struct(">ii")

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._last = self[self.entries - 1] if self.entries else OffsetPosition(base_offset, 0)

    def __getitem__(self, number: int) -> OffsetPosition:
        relative_offset, position = self._fields(number)
        return OffsetPosition(self.base_offset + relative_offset, position)

    @property
    def last(self) -> OffsetPosition:
        """The newest entry, or the segment's start where there is none."""
        return self._last

    def append(self, offset: int, position: int) -> None:
        self._append(offset - self.base_offset, position)
        self._last = OffsetPosition(offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The greatest entry at or below `offset`; the segment's start where there is none.  O(log entries)."""
        last = self._last
        if offset >= last.offset:  # consumers that keep up read here
            return last
        number = bisect_right(range(self.entries), offset, key=lambda i: self[i].offset) - 1
        return self[number] if number >= 0 else OffsetPosition(self.base_offset, 0)

    def clear(self) -> None:
        super().clear()
        self._last = OffsetPosition(self.base_offset, 0)

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        relative_offset, position = fields
        return relative_offset > 0 and position > 0
