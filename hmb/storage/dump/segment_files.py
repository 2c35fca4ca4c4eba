"""Reads the files of a segment without changing them.

When a broker opens a segment (segment.py), it can create, repair and change files. The dump commands must not
change any files, because they also read damaged files and the files of a running broker. They therefore use the
readers of this module.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Self

from hmb.protocol.errors import KafkaError, corrupt_message
from hmb.records import Batch, parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.time_index import TimeIndex


class BatchAt(NamedTuple):
    """The header of a batch, and the position of the batch in the log file."""

    position: int
    batch: Batch


def header_at(log: BufferedReader, position: int) -> Batch:
    """Return the header of the batch at `position`. Raises KafkaError if the bytes there are not a header."""
    if position < 0:
        raise corrupt_message(f"{position} is not a position in the file")
    log.seek(position)
    return parse_batch(log.read(HEADER_PEEK))


def walk(log: BufferedReader, position: int = 0) -> Iterator[BatchAt]:
    """Yield the header of each complete batch, from `position` on. Raises KafkaError at the first damaged header.

    A header that is cut off by the end of the file counts as damaged. If the file contains the header of the last
    batch, but not the whole batch, the function ends without an error. It does not yield this header.
    """
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
    """Describes the bytes after the last entry of an index file. Kafka fills this part with zeros.

    `position` is the end of the last entry. `problem` is None if only zeros follow this entry, and their number is
    a multiple of the entry size. Otherwise, `problem` describes the damage.
    """

    position: int
    padding: int  # number of zero bytes after the last entry
    problem: str | None


class IndexReader:
    """Reads the entries of an index file by their number. Zeros at the end of the file are not entries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_time_index = path.suffix == TimeIndex.SUFFIX
        self.entry_struct = TimeIndex.ENTRY if self.is_time_index else OffsetIndex.ENTRY
        self.base_offset = int(path.stem)
        self._file = path.open("rb")
        slots = os.fstat(self._file.fileno()).st_size // self.entry_struct.size
        # Kafka can fill the end of an index file with zeros. A real entry is never (0, 0), so the entries end before
        # the first pair (0, 0). A binary search finds this pair. `_count` is the number of entries before it.
        self._count = bisect_left(range(slots), True, key=lambda number: self._fields(number) == (0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> tuple[int, int]:
        """Return the entry with this number: (offset, position) or, in a time index, (timestamp, offset)."""
        one, other = self._fields(number)
        return (one, self.base_offset + other) if self.is_time_index else (self.base_offset + one, other)

    def lookup(self, key: int) -> tuple[int, int] | None:
        """Return the last entry whose offset is not greater than `key`, or None if no such entry exists.

        In a time index, `key` is a timestamp, and is compared with the timestamps of the entries.
        """
        number = bisect_right(range(len(self)), key, key=lambda number: self[number][0]) - 1
        return self[number] if number >= 0 else None

    def tail(self) -> Tail:
        """Check that only zeros follow the last entry of the index. Return the number of zeros, or the problem."""
        position = len(self) * self.entry_struct.size
        self._file.seek(position)
        size = 0
        while data := self._file.read(1 << 16):
            if any(data):
                return Tail(position, 0, "the bytes after the entries are neither entries nor zeros")
            size += len(data)
        if size % self.entry_struct.size:
            return Tail(position, 0, f"{size} bytes after the entries are not a multiple of {self.entry_struct.size}")
        return Tail(position, size, None)

    def _fields(self, number: int) -> tuple[int, int]:
        self._file.seek(number * self.entry_struct.size)
        one, other = self.entry_struct.unpack(self._file.read(self.entry_struct.size))
        return one, other
