"""Reading a segment's files from outside: no log is opened, nothing is created or mended.

What a broker keeps open and appends to (`segment`, `offset_index`), the tools only look at, also when it is damaged and
also while a broker writes to it.
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
    """A batch, of which only the header was read, and where it stands in the log."""

    position: int
    batch: Batch


def header_at(log: BufferedReader, position: int) -> Batch:
    """The batch at this position, its header only; KafkaError if there is none."""
    if position < 0:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{position} is no position in a file")
    log.seek(position)
    return parse_batch(log.read(HEADER_PEEK))


def walk(log: BufferedReader, position: int = 0) -> Iterator[BatchAt]:
    """The whole batches from this position on; KafkaError where the log is damaged."""
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
    """What stands behind the entries of an index: zeros, or something that is wrong."""

    position: int
    padding: int  # bytes
    problem: str | None


class IndexReader:
    """An index file that is only read: its entries by number, without the zeros that pad the index of a log in use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_time_index = path.suffix == ".timeindex"
        self.entry_struct = TimeIndex.ENTRY if self.is_time_index else OffsetIndex.ENTRY
        self.base_offset = int(path.stem)
        self._file = path.open("rb")
        slots = os.fstat(self._file.fileno()).st_size // self.entry_struct.size
        # The first slot without an entry: a real one is never all zeros, so that it can be found by bisection.
        self._count = bisect_left(range(slots), True, key=lambda number: self._fields(number) == (0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> tuple[int, int]:
        """(offset, position) in an offset index, (timestamp, offset) in a time index."""
        one, other = self._fields(number)
        return (one, self.base_offset + other) if self.is_time_index else (self.base_offset + one, other)

    def lookup(self, key: int) -> tuple[int, int] | None:
        """The greatest entry whose first number is at or below `key`; None before the first one."""
        number = bisect_right(range(len(self)), key, key=lambda number: self[number][0]) - 1
        return self[number] if number >= 0 else None

    def tail(self) -> Tail:
        """What stands behind the entries."""
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
