"""Sorted entries: the file of an index. All entries of the file have the same size, and are sorted by their keys.

A segment has three indexes. The offset index maps an offset to a position, the time index maps a timestamp to an
offset, and the transaction index maps the offset of a marker to an aborted transaction. The indexes differ only in the
fields of their entries. `IndexFile` contains the code that all three use: it appends entries, searches for a key, and
checks the file when the broker opens it. Its subclass `SegmentIndex` also keeps the last entry in memory, for the
offset index and the time index.

The entries of an index are divided into blocks of 512 entries. Usually, an index has one entry for 4 KiB of log, so a
block covers about 2 MiB of log. The index keeps the first key of each block in memory, which takes 8 bytes. A search
takes two steps. First, a binary search in the keys in memory finds the block. Then the index reads this block from the
file, and a binary search in the block finds the entry. The last block that was read stays in memory (index_blocks.py).

For example, an offset index of 10,000 entries (80,000 bytes) has 20 blocks of 512 entries. A look-up reads one block,
which has 4,096 bytes.

An index reads blocks of its file, and does not use a memory map of the file. The reason is that another process may
truncate the file. If the broker then read a map at a position after the new end, the kernel would kill the broker
(SIGBUS). A normal read of a truncated file only returns fewer bytes. In this case, the search returns an earlier entry,
so the scan of the log takes longer, and the broker logs the damage.
"""

from __future__ import annotations

import logging
import os
import struct
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, TypeVar

from hmb.storage.files.index_blocks import NO_BLOCK, Block, decoded_block
from hmb.storage.files.virtual import VirtualFile

LOGGER = logging.getLogger(__name__)
BLOCK = 512  # number of entries that a search reads at once; 512 entries of 8 bytes are one page of memory
NO_KEYS = array("q")
Entry = TypeVar("Entry")  # the class of a decoded entry


class FoundIndex(NamedTuple):
    """The state of an index file when the broker opened it: its size (bytes), and its last entry or None."""

    size: int
    last: tuple[int, ...] | None


class IndexFile(ABC):
    """A file of entries that all have the same size and are sorted by their key.

    A thread that appends holds the log's lock. A thread that searches takes no lock, because `entries` (the number of
    entries) grows only after an entry is written completely.
    """

    ENTRY: ClassVar[struct.Struct]
    KEY: ClassVar[struct.Struct]

    def __init__(self, path: Path, base_offset: int) -> None:
        self.base_offset = base_offset
        self._found = self._read_end(path)
        self.file = self._file_at(path, exists=self._found is not None)
        self.entries = self._found.size // self.ENTRY.size if self._found else 0
        self._block_keys = NO_KEYS  # the first key of each block; this array never changes, a longer array replaces it
        self._last_block = NO_BLOCK  # the block that the last search has read
        self._unwritten: bytearray | None = None
        self._is_cut = False  # whether an error about lost entries was already logged

    def _file_at(self, path: Path, *, exists: bool) -> VirtualFile:
        return VirtualFile(path, exists=exists)  # An index needs no sync: the broker can rebuild it.

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
        except OSError as error:  # For example, the path is a directory. `error` does not name the path.
            raise OSError(error.errno, error.strerror, str(path)) from error
        finally:
            os.close(descriptor)
        return FoundIndex(size, self.ENTRY.unpack(last) if len(last) == self.ENTRY.size else None)

    @property
    def path(self) -> Path:
        return self.file.path

    @abstractmethod
    def is_sane(self) -> bool:
        """Return whether all entries were whole and had possible values when the broker opened the file."""

    def clear(self) -> None:
        """Remove all entries, so that the index can be rebuilt from the log. Raises OSError."""
        self.entries = 0
        self._block_keys = NO_KEYS
        self._last_block = NO_BLOCK
        self.file.truncate(0)
        self._found = FoundIndex(0, None)

    @property
    def size(self) -> int:
        return self.entries * self.ENTRY.size

    def make(self) -> None:
        """Create the file if it does not exist.

        If the file were missing at the next start, the broker would report that the index is lost.
        """
        if not self.file.exists:
            self.file.open()

    @contextmanager
    def recreated(self) -> Iterator[None]:
        """Remove all entries. Collect the entries that the `with` block appends, and write them at its end.

        If this write fails, the index stays empty, and look-ups scan the log. Raises OSError if the file cannot be
        emptied.
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
        """Return the bytes of `count` entries, from the entry with the number `first` on.

        If another process has cut or removed the file, return the bytes of the entries that remain.
        """
        size = count * self.ENTRY.size
        try:
            data = self.file.read(size, first * self.ENTRY.size)
        except OSError:  # For example, another process has removed the file.
            data = b""
        if len(data) < size:
            self._on_cut()
        return data[: len(data) - len(data) % self.ENTRY.size]

    def _on_cut(self) -> None:
        """Log an error, but only once: another process has cut the file or removed it, so entries are missing."""
        if not self._is_cut:
            self._is_cut = True
            LOGGER.error("%s was cut or removed by another process: look-ups scan the log from an earlier position "
                         "until the broker rebuilds the index at its next start", self.path)  # fmt: skip

    def _search(self, bisect: Callable[..., int], key: int) -> tuple[int, tuple[int, ...] | None]:
        """Return the number of entries whose key is below `key`, and the fields of the last one of them, or None.

        If `bisect` is `bisect_right`, an entry whose key is equal to `key` also counts. If another process has cut the
        file, the search ignores the entries that are no longer in the file. The search takes O(log n) steps for n
        entries.
        """
        block_keys = self._block_keys
        if len(block_keys) * BLOCK < self.entries:
            block_keys = self._extend_block_keys()
        for block in range(bisect(block_keys, key) - 1, -1, -1):
            _, keys, data = self._block(block)
            if keys:  # A block that was cut off has no keys. The loop then tries the block before it.
                found = bisect(keys, key)
                fields = self.ENTRY.unpack_from(data, (found - 1) * self.ENTRY.size) if found else None
                return block * BLOCK + found, fields
        return 0, None

    def _block(self, number: int) -> Block:
        """Return the block with this number: 512 entries, or fewer if it is the last block.

        If the previous call has returned the same block, the block is still in memory. Otherwise, read it from the
        file.
        """
        block, count = self._last_block, min(BLOCK, self.entries - number * BLOCK)
        if block.number != number or len(block.keys) != count:
            data = self._read(number * BLOCK, count)
            block = self._last_block = decoded_block(number, data, self.KEY, self.ENTRY.size)
        return block

    def _extend_block_keys(self) -> array[int]:
        """Return the first key of each block. For blocks that are new since the last search, read the file."""
        block_keys = self._block_keys[:]  # Other threads may be reading the old array, so it must not change.
        for first in range(len(block_keys) * BLOCK, self.entries, BLOCK):
            data = self._read(first, 1)
            if not data:
                break
            block_keys.append(self.KEY.unpack_from(data)[0])
        self._block_keys = block_keys
        return block_keys

    def _fields(self, number: int) -> tuple[int, ...] | None:
        """Return the fields of the entry with this number, or None if the file has lost this entry."""
        data = self._read(number, 1)
        return self.ENTRY.unpack(data) if data else None


class SegmentIndex(IndexFile, Generic[Entry]):
    """An index that keeps its last entry in memory: the offset index or the time index."""

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._last = self._entry(self._found.last if self._found else None)

    @property
    def last(self) -> Entry:
        """The last entry, or the entry for the start of the segment if the index is empty."""
        return self._last

    def clear(self) -> None:
        super().clear()
        self._last = self._entry(None)

    def is_sane(self) -> bool:
        """Return whether the file had only whole entries when the broker opened it, and no zeros at its end."""
        if self._found is None or self._found.size % self.ENTRY.size:
            return False
        return self._found.last is None or self._is_sane_entry(self._found.last)

    @abstractmethod
    def _entry(self, fields: tuple[int, ...] | None) -> Entry:
        """Return the entry with these fields. If `fields` is None, return the entry for the start of the segment."""

    @abstractmethod
    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        """Return whether an entry of this index can have these values."""
