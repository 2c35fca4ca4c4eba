"""Converts batches to Arrow columns, without creating a Python object for each record.

A consumer spends most of its time creating a Python object for each record. Arrow stores a column in two
buffers, without such objects. One buffer contains all values. The other buffer contains the position at which
each value begins.

A record batch contains other fields between the values of its records. So this module computes only the
positions of the values, and Arrow copies the values to a column. The steps are:
1. Join the uncompressed records of all batches. Find the position of each record from the lengths of the
   records. This loop in Python takes 0.1 us for each record.
2. Decode the varints inside the records with numpy: the timestamps, the offsets, and the lengths of keys
   and values. Each call of numpy works on one field of all records.
3. Create an Arrow array that shares the joined bytes. Its elements are the values and the *gaps* (the bytes
   between values). Arrow copies only the values to the new column. The next drawing shows the values `abc`
   and `de`:
       bytes        ... 6 | abc | 0 5 2 | de | 0 ...
       elements     gap     value  gap    value  gap
       column               abc           de

The steps above work only for *plain* batches. Messages v0 and v1, batches with varints of more than five bytes,
and damaged batches are not plain. If a batch is not plain, this module creates Python objects
(`consumer_records`), and converts these objects to columns. This takes about six times as long as for plain
batches. If a batch is damaged, `consumer_records` raises an error.

The Arrow columns are the same as in Spark's Kafka source, but with other names (`timestamp_type` instead of
`timestampType`):
- `topic` (string), `partition` (int32) and `offset` (int64)
- `timestamp` (ms with time zone UTC, or null if the record has no timestamp)
- `timestamp_type` (int8): -1 for no timestamp, 0 for create time, 1 for log append time
- `key` and `value` (binary)
- `headers`, a list of structs with the fields `key` (string) and `value` (binary)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hmb.protocol.enums import INT32_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import LOG_APPEND_TIME_BIT, RECORD_BATCH_OVERHEAD, RecordBatch
from hmb.records.compression import CODEC_MASK
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.fast.consumer_records import consumer_records
from hmb.records.fast.plain import END_AFTER_ONE, END_AFTER_TWO, NotPlainError, has_plain_numbers
from hmb.records.reading import Batch
from hmb.records.record import NO_TIMESTAMP, Header, decode_headers
from hmb.records.varint import VarintError, read_varint

try:
    import numpy as np
    import pyarrow as pa
except ImportError as error:
    raise ImportError(f"Arrow batches need pyarrow and numpy ({error}): pip install 'hmb[arrow]'") from error

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC")),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS, nullable=False),
    ]
)
_LONGEST = 5  # bytes; a batch with a longer varint is decoded by a slower function (`consumer_records`)

Array = Any  # an array of numpy or Arrow (these packages have no type hints)


def columns(
    topic: str,
    partition: int,
    batches: Sequence[Batch],
    first: int,
    end: int | None,
    names: Sequence[str] = SCHEMA.names,
) -> pa.RecordBatch:
    """Return the records of batches as Arrow columns. The caller must have checked the batches.

    The columns contain the records at the offsets from `first` to `end` - 1. If `end` is None, they contain all
    records from offset `first` on. `names` contains the names of the columns that the function returns.
    """
    needed = names if "offset" in names else [*names, "offset"]
    try:
        table = _columns_from_bytes(topic, partition, batches, needed)
    except (NotPlainError, IndexError, VarintError):
        records = [record for batch in batches for record in consumer_records(batch, topic, partition)]
        table = columns_of_records(records)
    offsets = np.frombuffer(table.column("offset").buffers()[1], np.int64, table.num_rows)
    wanted = offsets >= first
    if end is not None:
        wanted &= offsets < end
    table = table if wanted.all() else table.filter(_bools(wanted))
    return table if table.schema.names == names else table.select(names)


def columns_of_records(records: Sequence[ConsumerRecord]) -> pa.RecordBatch:
    """Return the columns of records that are already Python objects."""
    times = [None if record.timestamp == NO_TIMESTAMP else record.timestamp for record in records]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.topic for record in records], pa.string()),
            pa.array([record.partition for record in records], pa.int32()),
            pa.array([record.offset for record in records], pa.int64()),
            pa.array(times, pa.int64()).cast(pa.timestamp("ms", "UTC")),
            pa.array([int(record.timestamp_type) for record in records], pa.int8()),
            pa.array([record.key for record in records], pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            _header_column(record.headers for record in records),
        ],
        schema=SCHEMA,
    )


def _columns_from_bytes(
    topic: str, partition: int, batches: Sequence[Batch], names: Sequence[str]
) -> pa.RecordBatch:
    contents = [_content(batch) for batch in batches]
    data = b"".join(contents)
    if len(data) > INT32_MAX:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"{len(data)} bytes are too many for one column: use a smaller max_bytes"
        )
    starts = _starts(data, batches, contents)
    batch_fields = _batch_fields(batches)
    at, ends = np.array(starts, np.int64), np.array([*starts[1:], len(data)], np.int64)
    array, count = np.frombuffer(data, np.uint8), len(starts)
    _, at = _varints(array, at)  # This skips the length of the record.
    time_deltas, at = _varints(array, at + 1)  # + 1 skips the attributes.
    deltas, at = _varints(array, at)
    keys, at = _slices(array, at)
    values, at = _slices(array, at)
    headers, at = _headers(data, at, array[at])
    if (at != ends).any() or (deltas < 0).any() or (deltas > batch_fields.last_offset_delta).any():
        raise NotPlainError
    create_times = batch_fields.base_timestamp + time_deltas
    timestamps = np.where(batch_fields.has_append_time, batch_fields.max_timestamp, create_times)
    arrays: dict[str, Callable[[], Array]] = {
        "topic": lambda: pa.repeat(_text(topic), count),
        "partition": lambda: _numbers(pa.int32(), np.full(count, partition, np.int32)),
        "offset": lambda: _numbers(pa.int64(), batch_fields.base_offset + deltas),
        "timestamp": lambda: _numbers(pa.timestamp("ms", "UTC"), timestamps, timestamps != NO_TIMESTAMP),
        "timestamp_type": lambda: _numbers(pa.int8(), batch_fields.has_append_time.astype(np.int8)),
        "key": lambda: _binary(data, keys),
        "value": lambda: _binary(data, values),
        "headers": lambda: headers,
    }
    return pa.RecordBatch.from_arrays(
        [arrays[name]() for name in names], schema=pa.schema([SCHEMA.field(name) for name in names])
    )


def _content(batch: Batch) -> bytes | memoryview:
    """Return the uncompressed records of a batch.

    Raises NotPlainError for a `Message` (v0 or v1), and for a record batch with very large offsets or timestamps.
    """
    if not isinstance(batch, RecordBatch) or not has_plain_numbers(batch):
        raise NotPlainError
    return batch.uncompressed() if batch.attributes & CODEC_MASK else batch.view[RECORD_BATCH_OVERHEAD:]


def _starts(data: bytes, batches: Sequence[Batch], contents: Sequence[bytes | memoryview]) -> list[int]:
    """Return the position in `data` at which each record begins.

    `contents` has one element for each batch: the bytes of its records. `data` contains the same bytes, joined.

    Raises NotPlainError, IndexError or VarintError if the last record of a batch does not end where the batch ends.
    Raises NotPlainError if a batch header contains a wrong number of records.
    """
    starts: list[int] = []
    add, position, end = starts.append, 0, 0
    for batch, content in zip(batches, contents, strict=True):
        end += len(content)
        before = len(starts)
        while position < end:
            add(position)
            if (size := data[position]) < 0x80:
                position += END_AFTER_ONE[size]
            elif (second := data[position + 1]) < 0x80:
                position += END_AFTER_TWO[size] + (second << 6)
            else:
                length, after_length = read_varint(data, position)
                position = after_length + length if length > 0 else len(data) + 1
        if position != end or len(starts) - before != batch.records_count:
            raise NotPlainError
    return starts


def _numbers(kind: Any, values: Array, is_present: Array | None = None) -> Array:
    """Return an Arrow column of the type `kind` that shares the memory of the numpy array `values`.

    Where `is_present` is False, the column contains null. If `is_present` is None, the column has no nulls.

    The function avoids `pa.array`, because the first call of `pa.array` or `pa.scalar` imports pandas (0.2 s).
    """
    validity = None if is_present is None or is_present.all() else _bit_buffer(is_present)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(values)])


def _bools(values: Array) -> Array:
    """Return an Arrow column of the bools in `values`."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bit_buffer(values)])


def _text(text: str) -> Any:
    """Return `text` as an Arrow scalar."""
    data = text.encode()
    ends = np.array([0, len(data)], np.int32)
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])[0]


def _bit_buffer(values: Array) -> Any:
    """Return a buffer with one bit for each bool. As in Arrow, the first bool is the lowest bit of the first byte."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))


class _BatchFields(NamedTuple):
    """Fields of batch headers. Each field is a numpy array with one element for each record.

    The records of a batch share the batch header. For example, if a batch has base offset 500 and 3 records,
    `base_offset` contains 500 three times.
    """

    base_offset: Array
    last_offset_delta: Array
    base_timestamp: Array
    max_timestamp: Array
    has_append_time: Array


def _batch_fields(batches: Iterable[Batch]) -> _BatchFields:
    headers = [
        (
            batch.base_offset,
            batch.last_offset_delta,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.attributes & LOG_APPEND_TIME_BIT,
            batch.records_count,
        )
        for batch in batches
        if isinstance(batch, RecordBatch)
    ]
    repeated = np.repeat(np.array(headers, np.int64).reshape(-1, 6), [header[-1] for header in headers], axis=0)
    base_offset, last_offset_delta, base_timestamp, max_timestamp, append_time, _ = repeated.T
    return _BatchFields(base_offset, last_offset_delta, base_timestamp, max_timestamp, append_time != 0)


def _varints(array: Array, at: Array) -> tuple[Array, Array]:
    """Decode the same field of each record. The field is a varint, and `at` contains its position in each record.

    Return the decoded numbers, and the positions after the varints.
    """
    byte = array[at]
    zigzag, at = (byte & 0x7F).astype(np.int64), at + 1
    # `longer` contains the indexes of the records whose varint has a further byte (the bit 0x80 is set).
    longer, shift = np.flatnonzero(byte >= 0x80), 7
    while len(longer):
        if shift == 7 * _LONGEST:
            raise NotPlainError
        byte = array[at[longer]]
        zigzag[longer] |= (byte & 0x7F).astype(np.int64) << shift
        at[longer] += 1
        longer, shift = longer[byte >= 0x80], shift + 7
    return zigzag >> 1 ^ -(zigzag & 1), at


class _Slices(NamedTuple):
    """The start and the end position of each value of a column.

    `is_present` is False for each null value. If the column has no null values, `is_present` is None.
    """

    starts: Array
    ends: Array
    is_present: Array | None


def _slices(array: Array, at: Array) -> tuple[_Slices, Array]:
    """Return the position of each record's key, and the position after the key. The function also works for values.

    A record stores the length of its key before the key. `at` contains the position of this length in each record.
    """
    sizes, starts = _varints(array, at)
    is_present = sizes >= 0
    ends = starts + np.where(is_present, sizes, 0)
    return _Slices(starts, ends, None if is_present.all() else is_present), ends


def _binary(data: bytes, slices: _Slices) -> pa.Array:
    """Return a column with the values at the positions in `slices`.

    The function first divides `data` into gaps and values. A gap contains the bytes before a value. The function
    then copies only the values to the returned column.
    """
    count = len(slices.starts)
    if slices.is_present is not None and not slices.is_present.any():
        return pa.nulls(count, pa.binary())
    bounds = np.zeros(2 * count + 1, np.int32)
    bounds[1::2], bounds[2::2] = slices.starts, slices.ends
    gaps_and_values = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    return gaps_and_values.take(_numbers(pa.int64(), np.arange(1, 2 * count, 2), slices.is_present))


def _headers(data: bytes, at: Array, first: Array) -> tuple[pa.Array, Array]:
    """Return the column of headers, and the position after the headers of each record.

    `at` contains the position of the headers in each record, and `first` contains the byte at this position. Most
    records have no headers: the byte is 0. For other records, a slow loop in Python decodes the headers.

    Raises NotPlainError, IndexError or VarintError if the headers are malformed.
    """
    count, at = len(at), at + 1
    has_some = np.flatnonzero(first)
    if not len(has_some):
        starts = pa.py_buffer(np.zeros(count + 1, np.int32))
        return pa.Array.from_buffers(HEADERS, count, [None, starts], children=[pa.nulls(0, HEADERS.value_type)]), at
    headers: list[tuple[Header, ...]] = [()] * count
    for number in has_some.tolist():
        size, content = read_varint(data, int(at[number]) - 1)
        try:
            headers[number], at[number] = decode_headers(data, content, size)
        except (KafkaError, UnicodeDecodeError) as error:
            raise NotPlainError from error
    return _header_column(headers), at


def _header_column(headers: Iterable[tuple[Header, ...]]) -> pa.Array:
    return pa.array([[{"key": key, "value": value} for key, value in each] for each in headers], HEADERS)
