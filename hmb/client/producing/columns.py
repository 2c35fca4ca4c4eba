"""The input of `send_many`: columns of values and keys, as lists of bytes and None or as Arrow columns.

An Arrow column of type binary or string keeps its values in one buffer, one after another, and their ends in a second
buffer. This module cuts the values out of the buffers directly and so avoids an Arrow object for each value. This
module does not import pyarrow, because a program with an Arrow column has imported pyarrow already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from hmb.client.producing.partitioner import Partitioner
from hmb.client.producing.record_checks import check_timestamp, checked_size
from hmb.records import Header

Column = Any  # a sequence of bytes and None, or a pyarrow Array or ChunkedArray of (large) binary or string

ROWS_AT_A_TIME = 4096  # This number limits the memory for a copy of Arrow values, and the time that a lock is held.
_END_FORMATS: dict[str, Literal["i", "q"]] = {"binary": "i", "string": "i", "large_binary": "q", "large_string": "q"}


class Row(NamedTuple):
    """One record of a `send_many`. Partition None means any partition. `size` is an upper bound in bytes."""

    partition: int | None
    size: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Columns(NamedTuple):
    """Some records as columns. A column is None if no record has a key, headers or a timestamp."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    headers: Sequence[Iterable[Header]] | None
    timestamps: Sequence[int] | None

    @property
    def are_plain(self) -> bool:
        """Whether the records consist of values only, and no value is null."""
        return self[1:] == (None, None, None) and None not in self.values

    def rows(self, now: int, partition: int | None, partitioner: Partitioner, partitions: int) -> list[Row]:
        """Return the records one by one, each with its partition.

        Raises ValueError or TypeError for values that cannot make a record.
        """
        rows = []
        for index, value in enumerate(self.values):
            key = self.keys[index] if self.keys is not None else None
            headers = tuple(self.headers[index]) if self.headers is not None else ()
            timestamp = self.timestamps[index] if self.timestamps is not None else now
            check_timestamp(timestamp)
            chosen = partitioner(key, partitions) if partition is None else partition
            if chosen is not None and not 0 <= chosen < partitions:
                what = f"the topic has no partition {chosen}; its partitions are 0 to {partitions - 1}"
                raise ValueError(f"value {index}: {what}")
            rows.append(Row(chosen, checked_size(key, value, headers), timestamp, key, value, headers))
        return rows


def columns(
    values: Column, keys: Column | None, headers: Sequence[Iterable[Header]] | None, timestamps: Sequence[int] | None
) -> Iterator[Columns]:
    """Yield the records, at most ROWS_AT_A_TIME at a time. Raises TypeError and ValueError as `rows` does."""
    for name, column in {"key": keys, "header": headers, "timestamp": timestamps}.items():
        if column is not None and len(column) != len(values):
            raise ValueError(f"there are {len(values)} values, but {len(column)} {name}s")
    _check("value", values)
    if keys is not None:
        _check("key", keys)
    for start in range(0, len(values), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        yield Columns(
            _items(values[rows]),
            None if keys is None else _items(keys[rows]),
            None if headers is None else headers[rows],
            None if timestamps is None else timestamps[rows],
        )


def _is_arrow(column: Column) -> bool:
    return type(column).__module__.partition(".")[0] == "pyarrow"


def _check(name: str, column: Column) -> None:
    """Raise TypeError unless all items are bytes or None."""
    if _is_arrow(column):
        if str(column.type) not in _END_FORMATS:
            raise TypeError(f"{name}s are an Arrow column of binary or string, not of {column.type}")
    elif isinstance(column, (bytes, str)):
        raise TypeError(f"{name}s are a list of bytes, not {type(column).__name__}; to send one record, use send")
    elif not all(issubclass(kind, bytes | None) for kind in set(map(type, column))):
        number, item = next((number, item) for number, item in enumerate(column) if not isinstance(item, bytes | None))
        raise TypeError(f"{name} {number} is bytes or None, not {type(item).__name__}")


def _items(piece: Column) -> Sequence[bytes | None]:
    """Return the items of a column as bytes and None."""
    if not _is_arrow(piece):
        return piece  # type: ignore[no-any-return]
    return [item for chunk in getattr(piece, "chunks", [piece]) if len(chunk) for item in _items_of_chunk(chunk)]


def _items_of_chunk(chunk: Any) -> list[bytes | None]:
    _, ends_buffer, data_buffer = chunk.buffers()
    ends = memoryview(ends_buffer).cast("B").cast(_END_FORMATS[str(chunk.type)])
    positions = ends[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
    base = positions[0]
    data = b"" if data_buffer is None else bytes(memoryview(data_buffer)[base : positions[-1]])
    items: list[bytes | None] = [data[start - base : end - base] for start, end in pairwise(positions)]
    if chunk.null_count:
        for number, is_valid in enumerate(chunk.is_valid().to_pylist()):
            if not is_valid:
                items[number] = None
    return items
