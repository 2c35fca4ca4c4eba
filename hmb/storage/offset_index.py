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

import errno
import logging
import mmap
import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import ClassVar, NamedTuple

from hmb.storage.files import NAMES, open_file

LOGGER = logging.getLogger(__name__)


class FoundIndex(NamedTuple):
    """An index file as it was found: its size in bytes, the fields of its last entry."""

    size: int
    last: tuple[int, ...] | None


class IndexFile:
    """A file of fixed-width entries: appended one by one, read by number through a memory map.

    Appends happen under the log's lock.  Readers take no lock: `entries` grows only after an entry is written whole,
    and a reader that finds its map too short makes itself a new one.
    """

    ENTRY: ClassVar[struct.Struct]
    FIRST_FIELD: ClassVar[struct.Struct]  # by which the entries grow

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._file: FileIO | None = None  # opened at the first append: a log that nobody writes to holds no descriptor
        self._map: mmap.mmap | None = None
        self._unwritten: bytearray | None = None
        self._found = self._read_end()
        self.entries = self._found.size // self.ENTRY.size if self._found else 0

    def _read_end(self) -> FoundIndex | None:
        """What there is on disk; None where the file is missing."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            size = os.fstat(descriptor).st_size
            entries = size // self.ENTRY.size
            last = os.pread(descriptor, self.ENTRY.size, (entries - 1) * self.ENTRY.size) if entries else None
        finally:
            os.close(descriptor)
        return FoundIndex(size, self.ENTRY.unpack(last) if last else None)

    def is_sane(self) -> bool:
        """Whether the file that was found may be trusted: it holds whole entries, no zeros pad it at its end."""
        if self._found is None or self._found.size % self.ENTRY.size:
            return False
        return self._found.last is None or self._is_sane_entry(self._found.last)

    def clear(self) -> None:
        """Forget all entries, before they are made again from the log."""
        self._map = None
        self.entries = 0
        self._open().truncate(0)
        self._found = FoundIndex(0, None)

    @property
    def size(self) -> int:
        return self.entries * self.ENTRY.size

    def close(self) -> None:
        """Let go of the file; it opens again by itself when it is needed."""
        self._map = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def make(self) -> None:
        """Make the file if there is none: a missing one would count as lost."""
        if self._found is None and self._file is None:
            self._open()

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        raise AssertionError("each index says what its entries look like")

    @contextmanager
    def made_anew(self) -> Iterator[None]:
        """Forget all entries; those appended meanwhile are written at the end, in one go.

        Where that fails the index stays empty: look-ups scan the log instead.
        """
        self.clear()
        entries = self._unwritten = bytearray()
        try:
            yield
        finally:
            self._unwritten = None
        try:
            self._write(entries, 0)
        except OSError as error:
            LOGGER.warning("%s is left empty: %s", self.path, error)
            self.clear()

    def _append(self, *fields: int) -> None:
        entry = self.ENTRY.pack(*fields)
        if self._unwritten is None:
            self._write(entry, self.size)
        else:
            self._unwritten += entry
        self.entries += 1

    def _write(self, entries: bytes | bytearray, position: int) -> None:
        written = os.pwrite(self._open().fileno(), entries, position)
        if written < len(entries):
            raise OSError(errno.ENOSPC, f"only {written} of {len(entries)} bytes could be written", str(self.path))

    def _open(self) -> FileIO:
        if self._file is None:
            self._file = open_file(self.path)
        return self._file

    def _fields(self, number: int) -> tuple[int, ...]:
        return self.ENTRY.unpack_from(self._mapped(number + 1), number * self.ENTRY.size)

    def _mapped(self, entries: int) -> mmap.mmap:
        """The file with at least so many entries."""
        view = self._map
        if view is None or len(view) < entries * self.ENTRY.size:
            with NAMES, self.path.open("rb") as file:
                view = self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return view

    def _key(self, entries: int) -> Callable[[int], int]:
        """The first field of an entry by its number, for a binary search: nothing else is unpacked."""
        view, unpack, size = self._mapped(entries), self.FIRST_FIELD.unpack_from, self.ENTRY.size
        return lambda number: unpack(view, number * size)[0]


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(IndexFile):
    """`.index`: entries of 8 bytes, `relative offset: int32, position: int32`."""

    ENTRY = struct.Struct(">ii")
    FIRST_FIELD = struct.Struct(">i")

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        found = self._found.last if self._found else None
        self._last = self._entry(*found) if found else OffsetPosition(base_offset, 0)

    def __getitem__(self, number: int) -> OffsetPosition:
        return self._entry(*self._fields(number))

    def _entry(self, relative_offset: int, position: int) -> OffsetPosition:
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
        entries = self.entries
        number = bisect_right(range(entries), offset - self.base_offset, key=self._key(entries)) - 1 if entries else -1
        return self[number] if number >= 0 else OffsetPosition(self.base_offset, 0)

    def offset_at_or_behind(self, position: int) -> int | None:
        """The offset of the first entry at or behind a position of the log; None where there is none."""
        if position > self._last.position:
            return None
        entries = self.entries
        number = bisect_left(range(entries), position, key=lambda number: self._fields(number)[1])
        return self[number].offset if number < entries else None

    def clear(self) -> None:
        super().clear()
        self._last = OffsetPosition(self.base_offset, 0)

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        relative_offset, position = fields
        return relative_offset > 0 and position > 0
