"""Reading a segment's files without opening the log. The readers create and repair no file.

A broker keeps its files open and appends to them (segment.py, offset_index.py). The tools only read the files, even if
they are damaged, and while a broker writes to them.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Self

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Batch, parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.time_index import TimeIndex


class BatchAt(NamedTuple):
    """The header of a batch, and the batch's position in the log."""

    position: int
    batch: Batch


def header_at(log: BufferedReader, position: int) -> Batch:
    """Return the header of the batch at a position. Raises KafkaError if the bytes are not a header."""
    if position < 0:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{position} is not a position in the file")
    log.seek(position)
    return parse_batch(log.read(HEADER_PEEK))


def walk(log: BufferedReader, position: int = 0) -> Iterator[BatchAt]:
    """Yield the headers of the whole batches from a position on. Raises KafkaError at damage."""
    end = os.fstat(log.fileno()).st_size
    while position < end:
        try:
            batch = header_at(log, position)
        except KafkaError as error:
            raise KafkaError(error.code, f"{log.name} is damaged at position {position}: {error.message}") from error
        if position + batch.size > end:
            return
        yield BatchAt(position, batch)
        position += batch.size


class Tail(NamedTuple):
    """The bytes after the entries of an index: padding with zeros, or an error."""

    position: int
    padding: int  # the number of zero bytes after the last entry
    problem: str | None


class IndexReader:
    """Reads the entries of an index file by their number. Zeros that pad the index of a log in use do not count."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_time_index = path.suffix == ".timeindex"
        self.entry_struct = TimeIndex.ENTRY if self.is_time_index else OffsetIndex.ENTRY
        self.base_offset = int(path.stem)
        self._file = path.open("rb")
        slots = os.fstat(self._file.fileno()).st_size // self.entry_struct.size
        # The number of entries: the index of the first slot that is all zeros. No real entry is all zeros, so a binary
        # search finds this slot.
        self._count = bisect_left(range(slots), True, key=lambda number: self._fields(number) == (0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> tuple[int, int]:
        """Return an entry: (offset, position) in an offset index, and (timestamp, offset) in a time index."""
        one, other = self._fields(number)
        return (one, self.base_offset + other) if self.is_time_index else (self.base_offset + one, other)

    def lookup(self, key: int) -> tuple[int, int] | None:
        """Return the greatest entry whose first number is at or below `key`; None before the first entry."""
        number = bisect_right(range(len(self)), key, key=lambda number: self[number][0]) - 1
        return self[number] if number >= 0 else None

    def tail(self) -> Tail:
        """Return the padding after the entries, or the error in it."""
        position = len(self) * self.entry_struct.size
        self._file.seek(position)
        size = 0
        while data := self._file.read(1 << 16):
            if any(data):
                return Tail(position, 0, "the bytes behind the entries are neither entries nor zeros")
            size += len(data)
        if size % self.entry_struct.size:
            return Tail(position, 0, f"{size} bytes behind the entries are no multiple of {self.entry_struct.size}")
        return Tail(position, size, None)

    def _fields(self, number: int) -> tuple[int, int]:
        self._file.seek(number * self.entry_struct.size)
        one, other = self.entry_struct.unpack(self._file.read(self.entry_struct.size))
        return one, other
