"""The offset index: it maps an offset to a position in the segment's log file.

A broker that reads from an offset would have to scan all earlier batches. The index avoids the scan. A segment's
`.index` file holds one entry for about every `index.interval.bytes` of the log, in the order of the log::

    relative offset   int32   the last offset of a batch, minus the segment's base offset
    position          int32   the byte in the .log file at which this batch starts

Example: segment 8021, batches of 10 records and 1,000 bytes, an entry for every 4,096 bytes::

    relative offset   position      look-up of offset 8100: the wanted relative offset is 79
                 59       5000   <- the greatest entry at or below 79, so the scan of the log starts at byte 5,000
                119      11000

A look-up finds the greatest entry at or below the wanted offset by binary search. A short scan of the log from
there finds the batch. So the index can be small, it may lack entries, and the broker can rebuild it from the log. The
file has no header and no checksum. Kafka fills it with zeros in advance and trims it when the segment is closed.

Invariants: relative offsets and positions grow strictly. The first batch of a segment has no entry. So no relative
offset is 0, and a reader can tell an entry from Kafka's zeros.

Source: the thesis, chapter 9.5.3, "Storage Format"; Kafka's `OffsetIndex`.
"""

from __future__ import annotations

import logging
import os
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, NamedTuple

from hmb.storage.files.virtual import VirtualFile

LOGGER = logging.getLogger(__name__)
BLOCK = 512  # entries that a search reads at once: one page of an offset index
NO_KEYS = array("q")


class FoundIndex(NamedTuple):
    """An index file as the start found it: its size in bytes, and the fields of its last entry (None: no entry)."""

    size: int
    last: tuple[int, ...] | None


class IndexFile:
    """A file of entries of one width, in ascending order of their key.

    Appends happen under the log's lock. Readers take no lock: `entries` grows only after an entry is written whole.

    A search takes two steps. The first key of each block of entries is kept in memory, 8 bytes for about 2 MiB of log.
    A binary search there finds the block. The block is read from the file, and a second binary search finds the entry.
    A memory map would need no reads. But another process may truncate the file. The kernel then kills a broker that
    touches the map after the new end (SIGBUS).
    """

    ENTRY: ClassVar[struct.Struct]
    KEY: ClassVar[struct.Struct]

    def __init__(self, path: Path, base_offset: int) -> None:
        self.base_offset = base_offset
        self._found = self._read_end(path)
        self.file = self._file_at(path, exists=self._found is not None)
        self.entries = self._found.size // self.ENTRY.size if self._found else 0
        self._block_keys = NO_KEYS  # the first key of each block; a search replaces the array by a longer one
        self._unwritten: bytearray | None = None
        self._is_cut = False  # whether a cut was logged already

    def _file_at(self, path: Path, *, exists: bool) -> VirtualFile:
        return VirtualFile(path, exists=exists)  # An index needs no sync, because it can be rebuilt from the log.

    def _read_end(self, path: Path) -> FoundIndex | None:
        """Return the size and the last entry of the file; None if the file does not exist. Raises OSError."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            size = os.fstat(descriptor).st_size
            entries = size // self.ENTRY.size
            last = os.pread(descriptor, self.ENTRY.size, (entries - 1) * self.ENTRY.size) if entries else b""
        except OSError as error:  # for example, the path is a directory; the error does not name the path
            raise OSError(error.errno, error.strerror, str(path)) from error
        finally:
            os.close(descriptor)
        return FoundIndex(size, self.ENTRY.unpack(last) if len(last) == self.ENTRY.size else None)

    @property
    def path(self) -> Path:
        return self.file.path

    def is_sane(self) -> bool:
        """Return whether the file that the start found holds whole entries only, and no zeros at its end."""
        if self._found is None or self._found.size % self.ENTRY.size:
            return False
        return self._found.last is None or self._is_sane_entry(self._found.last)

    def clear(self) -> None:
        """Remove all entries, before they are written again from the log. Raises OSError."""
        self.entries = 0
        self._block_keys = NO_KEYS
        self.file.truncate(0)
        self._found = FoundIndex(0, None)

    @property
    def size(self) -> int:
        return self.entries * self.ENTRY.size

    def make(self) -> None:
        """Create the file if it does not exist, because the next start reports a missing index as lost."""
        if not self.file.exists:
            self.file.open()

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        raise AssertionError("each index checks its own entries")

    @contextmanager
    def made_anew(self) -> Iterator[None]:
        """Remove all entries. At the end of the `with` block, write the entries that the block appended, in one write.

        If that write fails, the index stays empty, and look-ups scan the log. Raises OSError if it cannot be emptied.
        """
        self.clear()
        entries = self._unwritten = bytearray()
        try:
            yield
        finally:
            self._unwritten = None
        try:
            self.file.write([entries], 0)
        except OSError as error:
            LOGGER.warning("%s is left empty: %s", self.path, error)
            self.clear()

    def _append(self, *fields: int) -> None:
        entry = self.ENTRY.pack(*fields)
        if self._unwritten is None:
            self.file.write([entry], self.size)
        else:
            self._unwritten += entry
        self.entries += 1

    def _read(self, first: int, count: int) -> bytes:
        """Return `count` entries from number `first` on, fewer if the file was cut. Raises OSError."""
        size = count * self.ENTRY.size
        try:
            data = self.file.read(size, first * self.ENTRY.size)
        except OSError:  # The file was removed, for example.
            data = b""
        if len(data) < size:
            self._on_cut()
        return data[: len(data) - len(data) % self.ENTRY.size]

    def _on_cut(self) -> None:
        """Report once that the file has lost entries. Look-ups then start at an earlier entry."""
        if not self._is_cut:
            self._is_cut = True
            LOGGER.error("%s was cut or removed by another process: look-ups scan the log from an earlier position "
                         "until the next start builds the index again", self.path)  # fmt: skip

    def _search(self, bisect: Callable[..., int], key: int) -> tuple[int, tuple[int, ...] | None]:
        """Count the entries below `key` (bisect_left) or up to it (bisect_right). Return the last one's fields, too.

        Entries that the file has lost do not count. O(log entries).
        """
        block_keys = self._block_keys
        if len(block_keys) * BLOCK < self.entries:
            block_keys = self._extend_block_keys()
        for block in range(bisect(block_keys, key) - 1, -1, -1):
            first = block * BLOCK
            data = self._read(first, min(BLOCK, self.entries - first))
            if data:  # If the block was cut off, the file may still have an earlier block.
                unpack, size = self.KEY.unpack_from, self.ENTRY.size
                found = bisect(range(len(data) // size), key, key=lambda entry: unpack(data, entry * size)[0])
                return first + found, self.ENTRY.unpack_from(data, (found - 1) * size) if found else None
        return 0, None

    def _extend_block_keys(self) -> array[int]:
        """Read the first keys of the blocks that were appended since the last search."""
        block_keys = self._block_keys[:]  # A copy, because other threads search in the old array, or extend it, too.
        for first in range(len(block_keys) * BLOCK, self.entries, BLOCK):
            data = self._read(first, 1)
            if not data:
                break
            block_keys.append(self.KEY.unpack_from(data)[0])
        self._block_keys = block_keys
        return block_keys

    def _fields(self, number: int) -> tuple[int, ...] | None:
        """Return the fields of the entry `number`; None if the file has lost this entry. Raises OSError."""
        data = self._read(number, 1)
        return self.ENTRY.unpack(data) if data else None


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(IndexFile):
    """`.index`: entries of 8 bytes, `relative offset: int32, position: int32`, never negative."""

    ENTRY = struct.Struct(">iI")  # a flipped sign bit makes a position after the end of the log, which a read notices
    KEY = struct.Struct(">i")  # The key is the relative offset.

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._last = self._entry(self._found.last if self._found else None)

    def _entry(self, fields: tuple[int, ...] | None) -> OffsetPosition:
        relative_offset, position = fields or (0, 0)  # the start of the segment
        return OffsetPosition(self.base_offset + relative_offset, position)

    @property
    def last(self) -> OffsetPosition:
        """The newest entry, or the segment's start if the index is empty."""
        return self._last

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Raises OSError."""
        self._append(offset - self.base_offset, position)
        self._last = OffsetPosition(offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the greatest entry at or below `offset`, or the segment's start. O(log entries)."""
        last = self._last
        if offset >= last.offset:  # Consumers without lag look up these offsets.
            return last
        return self._entry(self._search(bisect_right, offset - self.base_offset)[1])

    def at_or_after(self, position: int) -> OffsetPosition | None:
        """Return the first entry at or after a position of the log; None if no such entry exists."""
        if position > self._last.position:
            return None
        entries = range(self.entries)
        number = bisect_left(entries, position, key=self._position)
        found = self._fields(number) if number < len(entries) else None
        return None if found is None else self._entry(found)

    def _position(self, number: int) -> int:
        """Return the position in an entry. For an entry that the file has lost, return a position above all others."""
        fields = self._fields(number)
        return sys.maxsize if fields is None else fields[1]

    def clear(self) -> None:
        super().clear()
        self._last = self._entry(None)

    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        relative_offset, position = fields
        return relative_offset > 0 and position > 0
