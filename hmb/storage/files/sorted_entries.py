"""An index file is a sequence of entries. All entries have the same size, and they are sorted by their keys.

A segment has three indexes. The offset index maps an offset to a position in the log file. The time index maps a
timestamp to an offset. The transaction index maps the offset of a marker (the record that ends a transaction) to an
aborted transaction.

The class `IndexFile` appends entries to an index, and searches for a key. All three indexes share this code.
The offset index and the time index use the subclass `SegmentIndex`. This subclass also keeps the last entry in
memory, and checks the file after the broker has opened it.

The entries of an index are divided into blocks of 512 entries. The index keeps the first key of each block in memory
(8 bytes for each block). A search has two steps. A binary search among the keys in memory finds the right block. The
index then reads this block from the file, and a second binary search finds the entry in the block. The block that was
read last stays in memory (index_blocks.py).

An offset index usually has one entry for every 4 KiB of the log. A block of 512 entries then covers about 2 MiB of the
log.

For example, an offset index of 10,240 entries (8 bytes each) has 20 blocks of 512 entries. A look-up reads one
block, which has 4,096 bytes.

An index reads its file with normal reads, and not through a memory map. This protects the broker if another
process truncates the file. With a memory map, the broker could access a position after the new end of the file.
The kernel would then kill the broker with the signal SIGBUS. A normal read only returns fewer bytes. The search
then finds an earlier entry, so the broker has to scan more of the log. The broker also logs an error.
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
    """A file of index entries. All entries have the same size, and they are sorted by their keys.

    A thread that appends holds the log's lock. It increases `entries` (the number of entries) only after it has
    written the whole entry. A thread that searches reads only the first `entries` entries, so it never reads a
    partly written entry and needs no lock.
    """

    ENTRY: ClassVar[struct.Struct]
    KEY: ClassVar[struct.Struct]

    def __init__(self, path: Path, base_offset: int) -> None:
        self.base_offset = base_offset
        self._found = self._read_end(path)
        self.file = self._file_at(path, exists=self._found is not None)
        self.entries = self._found.size // self.ENTRY.size if self._found else 0
        self._block_keys = NO_KEYS  # the first key of each block; to add keys, a search stores a longer copy here
        self._last_block = NO_BLOCK  # the block that the last search has read
        self._unwritten: bytearray | None = None
        self._is_cut = False  # whether the index has already logged that the file was cut or removed

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
        """Return whether the file was intact when the broker opened it.

        A file is damaged if it ends inside an entry, or if it contains an impossible value. Each subclass
        defines which values it checks.
        """

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
        """Replace all entries with the entries that the `with` block appends.

        The method first removes the old entries. It writes the new entries to the file together, at the end of the
        `with` block. If it cannot write them, the index stays empty, and look-ups scan the log. Raises OSError if the
        old entries cannot be removed.
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
        """Return the bytes of the entries with the numbers `first` to `first` + `count` - 1.

        If another process has cut or removed the file, the result is shorter or empty.
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
        """Log an error: another process has truncated or removed the index file. Later calls do nothing."""
        if not self._is_cut:
            self._is_cut = True
            LOGGER.error("%s was cut or removed by another process. Look-ups now scan a longer part of the log. "
                         "The broker rebuilds the index at its next start", self.path)  # fmt: skip

    def _search(self, bisect: Callable[..., int], key: int) -> tuple[int, tuple[int, ...] | None]:
        """Return the number of entries before `key`, and the fields of the last of these entries.

        With `bisect_right`, the number includes entries whose key equals `key`. With `bisect_left`, it does not include
        them. If the number is 0, the fields are None.

        If another process has truncated the file, the search uses only the remaining entries. For n entries, a search
        takes O(log n) steps.
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
        """Return the block with this number. A block has 512 entries, but the last block can have fewer.

        The method keeps the block that it has read last. It reads the file only for another block, or for new entries.
        If another process has truncated the file, the block contains only the remaining entries.
        """
        block, count = self._last_block, min(BLOCK, self.entries - number * BLOCK)
        if block.number != number or len(block.keys) != count:
            data = self._read(number * BLOCK, count)
            block = self._last_block = decoded_block(number, data, self.KEY, self.ENTRY.size)
        return block

    def _extend_block_keys(self) -> array[int]:
        """Return the key of each block's first entry. If a key is not in memory yet, read it from the file."""
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
        """Return whether the file existed and was intact when the broker opened it.

        The file is damaged if it ends in the middle of an entry, or if its last entry has impossible values. For
        example, a crash can leave zeros at the end of a file, and an entry never contains only zeros.
        """
        if self._found is None or self._found.size % self.ENTRY.size:
            return False
        return self._found.last is None or self._is_sane_entry(self._found.last)

    @abstractmethod
    def _entry(self, fields: tuple[int, ...] | None) -> Entry:
        """Return the entry with these fields. If `fields` is None, return the entry for the start of the segment."""

    @abstractmethod
    def _is_sane_entry(self, fields: tuple[int, ...]) -> bool:
        """Return whether an entry of this index can have these values."""
