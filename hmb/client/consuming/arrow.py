"""Arrow columns of what was fetched, without a Python object for each record.

Arrow keeps a column's values side by side in one buffer, and where each begins in another. The bytes of a fetch hold
the values already, only with other things in between; so a column is found rather than built:

1. Walk from record to record, by their lengths: the one loop in Python, 0.1 us a record. Each begins where the last one
   ends, so there is no way around it.
2. Take all other varints apart with numpy, one field of all records at a time: timestamps, offsets, where keys and
   values are.
3. Read the bytes as an Arrow array in which every second element is a value, and those between are what stands between
   them; that costs nothing, for it is the same buffer. Then let Arrow take every second one.

What looks unusual is left to the record reader: messages of the old formats, numbers of more than five bytes, damage.
It gives the same columns, ten times slower, or says what is wrong.

The columns: `topic` string, `partition` int32, `offset` int64, `timestamp` in ms with time zone UTC (null where there
is none), `timestamp_type` int8 (-1 none, 0 create time, 1 log append time), `key` and `value` binary, `headers` a list
of structs of `key` string and `value` binary. Spark's Kafka source has the same, but for the names' spelling.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hmb.client.consuming.buffer import AbortedTransactions, Decoding, Fetched, InHand, damage
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import CODEC_MASK, LOG_APPEND_TIME_BIT, RECORD_BATCH_OVERHEAD, RecordBatch
from hmb.records.consumer_record import ConsumerRecord, consumer_records, has_usual_numbers
from hmb.records.plain_records import END_AFTER_ONE, END_AFTER_TWO
from hmb.records.reading import Batch, Buffer, iter_batches
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
MAX_INT32 = 2**31 - 1
_LONGEST = 5  # bytes of a varint that is read here

Array = Any  # of numpy or of Arrow, whose types mypy does not see


class _Unusual(Exception):
    """Something that has to be looked at with care."""


def record_batch(
    topic: str,
    partition: int,
    data: Buffer,
    first: int = 0,
    end: int | None = None,
    *,
    aborted: Iterable[tuple[int, int]] = (),
    check_crcs: bool = True,
) -> pa.RecordBatch:
    """What was fetched of one partition as columns: the records from offset `first` on, before `end`.

    Control records are left out, and those of `aborted` transactions: producer ids and first offsets, as an answer to
    a fetch of committed records names them. KafkaError if the bytes are damaged.
    """
    transactions = AbortedTransactions(aborted)
    wanted = []
    for batch in iter_batches(data):
        if batch.last_offset >= first:
            if check_crcs:
                batch.check()
            if not transactions.covers(batch) and not batch.is_control:
                wanted.append(batch)
    return columns(topic, partition, wanted, first, end)


def columns(topic: str, partition: int, batches: Sequence[Batch], first: int, end: int | None) -> pa.RecordBatch:
    """The records of these batches, which were checked, from offset `first` on, before `end`."""
    try:
        table = _quickly(topic, partition, batches)
    except (_Unusual, IndexError, VarintError):
        table = of_records([record for batch in batches for record in consumer_records(batch, topic, partition)])
    offsets = table.column("offset").to_numpy()
    wanted = offsets >= first
    if end is not None:
        wanted &= offsets < end
    return table if wanted.all() else table.filter(pa.array(wanted))


def of_records(records: Sequence[ConsumerRecord]) -> pa.RecordBatch:
    """Records that are objects already, as columns."""
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


def _quickly(topic: str, partition: int, batches: Sequence[Batch]) -> pa.RecordBatch:
    contents = [_content(batch) for batch in batches]
    data = b"".join(contents)
    if len(data) > MAX_INT32:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"{len(data)} bytes are too many for a column: fetch fewer at once"
        )
    starts = _starts(data, batches, contents)
    of_batch = _of_batch(batches)
    place, ends = np.array(starts, np.int64), np.array([*starts[1:], len(data)], np.int64)
    octets, count = np.frombuffer(data, np.uint8), len(starts)
    _, place = _numbers(octets, place)  # the length, which brought us here
    time_steps, place = _numbers(octets, place + 1)  # 1: the attributes
    deltas, place = _numbers(octets, place)
    keys, place = _sized(octets, place)
    values, place = _sized(octets, place)
    headers, place = _headers(data, place, octets[place])
    if (place != ends).any() or (deltas < 0).any() or (deltas > of_batch.last_offset_delta).any():
        raise _Unusual
    timestamps = np.where(of_batch.has_append_time, of_batch.max_timestamp, of_batch.base_timestamp + time_steps)
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(topic, pa.string()), count),
            pa.repeat(pa.scalar(partition, pa.int32()), count),
            pa.array(of_batch.base_offset + deltas),
            pa.array(timestamps, mask=timestamps == NO_TIMESTAMP).cast(pa.timestamp("ms", "UTC")),
            pa.array(of_batch.has_append_time.astype(np.int8)),
            _binary(data, keys),
            _binary(data, values),
            headers,
        ],
        schema=SCHEMA,
    )


def _content(batch: Batch) -> bytes | memoryview:
    """The bytes of the records; _Unusual for the old formats, which lay them out in another way."""
    if not isinstance(batch, RecordBatch) or not has_usual_numbers(batch):
        raise _Unusual
    return batch.uncompressed() if batch.attributes & CODEC_MASK else batch.view[RECORD_BATCH_OVERHEAD:]


def _starts(data: bytes, batches: Sequence[Batch], contents: Sequence[bytes | memoryview]) -> list[int]:
    """Where each record begins; _Unusual if those of a batch do not fill it, or are not as many as it says."""
    starts: list[int] = []
    note, position, end = starts.append, 0, 0
    for batch, content in zip(batches, contents, strict=True):
        end += len(content)
        before = len(starts)
        while position < end:
            note(position)
            if (size := data[position]) < 0x80:
                position += END_AFTER_ONE[size]
            elif (second := data[position + 1]) < 0x80:
                position += END_AFTER_TWO[size] + (second << 6)
            else:
                length, behind = read_varint(data, position)
                position = behind + length if length > 0 else len(data) + 1
        if position != end or len(starts) - before != batch.records_count:
            raise _Unusual
    return starts


class _OfBatch(NamedTuple):
    """What a record's batch says, for each record: columns of the batches' headers, each repeated."""

    base_offset: Array
    last_offset_delta: Array
    base_timestamp: Array
    max_timestamp: Array
    has_append_time: Array


def _of_batch(batches: Iterable[Batch]) -> _OfBatch:
    facts = [
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
    repeated = np.repeat(np.array(facts, np.int64).reshape(-1, 6), [fact[-1] for fact in facts], axis=0)
    base_offset, last_offset_delta, base_timestamp, max_timestamp, append_time, _ = repeated.T
    return _OfBatch(base_offset, last_offset_delta, base_timestamp, max_timestamp, append_time != 0)


def _numbers(octets: Array, place: Array) -> tuple[Array, Array]:
    """The varints at these places, one of each record, and the places behind them."""
    octet = octets[place]
    zigzag, place = (octet & 0x7F).astype(np.int64), place + 1
    longer, shift = np.flatnonzero(octet >= 0x80), 7  # whose number goes on
    while len(longer):
        if shift == 7 * _LONGEST:
            raise _Unusual
        octet = octets[place[longer]]
        zigzag[longer] |= (octet & 0x7F).astype(np.int64) << shift
        place[longer] += 1
        longer, shift = longer[octet >= 0x80], shift + 7
    return zigzag >> 1 ^ -(zigzag & 1), place


class _Pieces(NamedTuple):
    """Where the values of a column begin and end; and which are there, if not all of them."""

    starts: Array
    ends: Array
    is_there: Array | None


def _sized(octets: Array, place: Array) -> tuple[_Pieces, Array]:
    """Bytes with their length in front: a record's key or value."""
    sizes, starts = _numbers(octets, place)
    is_there = sizes >= 0
    ends = starts + np.where(is_there, sizes, 0)
    return _Pieces(starts, ends, None if is_there.all() else is_there), ends


def _binary(data: bytes, pieces: _Pieces) -> pa.Array:
    """A column of these pieces of the data: every second element of an array in which they and the rest take turns."""
    count = len(pieces.starts)
    if pieces.is_there is not None and not pieces.is_there.any():
        return pa.nulls(count, pa.binary())
    bounds = np.zeros(2 * count + 1, np.int32)
    bounds[1::2], bounds[2::2] = pieces.starts, pieces.ends
    turns = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    mask = None if pieces.is_there is None else ~pieces.is_there
    return turns.take(pa.array(np.arange(1, 2 * count, 2), mask=mask))


def _headers(data: bytes, place: Array, first: Array) -> tuple[pa.Array, Array]:
    """The headers, of which most records have none: a zero, whose place is known. The others are read one by one."""
    count, place = len(place), place + 1
    has_some = np.flatnonzero(first)
    if not len(has_some):
        none = pa.array([], HEADERS.value_type)
        return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), none, HEADERS), place
    headers: list[tuple[Header, ...]] = [()] * count
    for number in has_some.tolist():
        size, behind = read_varint(data, int(place[number]) - 1)
        try:
            headers[number], place[number] = decode_headers(data, behind, size)
        except (KafkaError, UnicodeDecodeError) as error:
            raise _Unusual from error
    return _header_column(headers), place


def _header_column(headers: Iterable[tuple[Header, ...]]) -> pa.Array:
    return pa.array([[{"key": key, "value": value} for key, value in each] for each in headers], HEADERS)


def take_batch(hand: InHand) -> pa.RecordBatch | None:
    """The records of the next partition that is in hand; None if there are none."""
    records = hand.take_decoded()
    if records:
        return of_records(records)
    while (fetched := hand.next_fetched()) is not None:
        table, after, error = _readable(fetched, hand.decoding)
        hand.handed_out_next(table.num_rows, after, error)
        if table.num_rows:
            return table
    return None


def _readable(fetched: Fetched, decoding: Decoding) -> tuple[pa.RecordBatch, int, KafkaError | None]:
    """The records of an answer up to the first batch that is damaged, the offset behind them, and what is wrong."""
    position = fetched.position
    first, end = position.consumed, position.end
    batches, after, error = decoding.checked(fetched)
    try:
        return columns(*position.partition, batches, first, end), after, error
    except KafkaError as why:
        error, after = KafkaError(why.code, f"{position.partition}: {why.message}"), first
    for number, batch in enumerate(batches):
        try:
            columns(*position.partition, [batch], first, end)
        except KafkaError as damaged:  # the checksum was right, but what it is the checksum of is not
            return columns(*position.partition, batches[:number], first, end), after, damage(position, batch, damaged)
        after = batch.last_offset + 1
    return columns(*position.partition, [], first, end), first, error  # only together are they too many
