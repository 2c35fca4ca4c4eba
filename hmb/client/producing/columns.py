"""Reads the input of `send_many`: columns of values and keys. A column is a Python list or an Arrow array.

An Arrow column of type binary or string stores the bytes of all its values one after another in one buffer.
Another buffer contains the positions at which the values begin and end. This module reads the two buffers
directly. With pyarrow's own methods, Python would create an extra object for each value, which takes time.

This module does not import pyarrow. It only uses the methods and attributes of the column that it receives. A
program without Arrow columns therefore does not need pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from hmb.client.producing.partitioner import Partitioner
from hmb.client.producing.record_checks import check_timestamp, checked_size
from hmb.records import Header

Column = Any  # a sequence of bytes and None, or a pyarrow Array or ChunkedArray with a type from _END_FORMATS

ROWS_AT_A_TIME = 4096  # limits the memory for copied Arrow values, and the time for which a lock is held
_END_FORMATS: dict[str, Literal["i", "q"]] = {"binary": "i", "string": "i", "large_binary": "q", "large_string": "q"}


class Row(NamedTuple):
    """One record of a call of `send_many`.

    If `partition` is None, the producer may choose any partition. The encoded record takes at most `size` bytes.
    """

    partition: int | None
    size: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Columns(NamedTuple):
    """Several records as columns: a list of values, a list of keys, a list of headers and a list of timestamps.

    `keys` is None if no record has a key. `headers` is None if no record has headers. `timestamps` is None if no record
    has a timestamp.
    """

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    headers: Sequence[Iterable[Header]] | None
    timestamps: Sequence[int] | None

    @property
    def are_plain(self) -> bool:
        """True if each record has only a value (no key, headers or timestamp), and no value is None."""
        return self[1:] == (None, None, None) and None not in self.values

    def rows(self, now: int, partition: int | None, partitioner: Partitioner, partitions: int) -> list[Row]:
        """Return each record as a `Row`, with the partition that the record goes to.

        A record without a timestamp gets the time `now`. Raises ValueError or TypeError if a key, value, header,
        timestamp or partition is not valid.
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
    """Yield the records as `Columns` objects, each with at most ROWS_AT_A_TIME records.

    Raises ValueError if the columns have different lengths, and TypeError if an item has the wrong type.
    """
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
    """Raise TypeError if an item of the column is neither bytes nor None, or if an Arrow column has a wrong type."""
    if _is_arrow(column):
        if str(column.type) not in _END_FORMATS:
            raise TypeError(f"{name}s must be an Arrow column of binary or string, not of {column.type}")
    elif isinstance(column, (bytes, str)):
        raise TypeError(f"{name}s must be a list of bytes, not {type(column).__name__}; to send one record, use send")
    elif not all(issubclass(kind, bytes | None) for kind in set(map(type, column))):
        number, item = next((number, item) for number, item in enumerate(column) if not isinstance(item, bytes | None))
        raise TypeError(f"{name} {number} must be bytes or None, not {type(item).__name__}")


def _items(piece: Column) -> Sequence[bytes | None]:
    """Return the items of a Python or Arrow column as a sequence of bytes and None."""
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
