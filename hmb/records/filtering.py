"""Batches without some of their records: what compaction leaves of them.

A batch keeps its base offset, its last offset delta and its sequence numbers, and the records keep their offsets.
Compaction copies a record of a batch v2 byte for byte.  That is possible because a record is written relative to its
batch's base offset and base timestamp, and these do not change.

One exception exists.  Tombstones get a *delete horizon*, the time from which on compaction may drop them.  It replaces
the batch's base timestamp (KIP-534), so each record of the batch gets
another timestamp delta.  All its other bytes stay.  Compaction reads the key of a record and whether a value exists.
It never reads value or headers, so a record whose headers no client can decode is compacted as any other.

Source: Kafka's `MemoryRecords.filterTo`, KIP-534.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.message import Message
from hmb.records.message_set import encode_message_set
from hmb.records.plain_records import NULL, Parts, plain_keys, plain_parts
from hmb.records.reading import Batch
from hmb.records.record import MAX_INT64, Record, TimestampType
from hmb.records.varint import VARINTS, VarintError, read_varint

Keep = Callable[[int, bytes | None, bool], bool]  # offset, key, whether it is a tombstone (a record without a value)
_ANY_DELTA_FITS = 1 << 62  # a timestamp below it stays an int64 with any delta that a plain record may have
MOST_RECORDS = 1 << 17  # of a batch: to filter it takes some 200 bytes of memory and 2 us for each of them
OLDEST = -(1 << 62)  # ms; the timestamp delta of an older record might be no int64 after the base timestamp has changed


class RawRecord(NamedTuple):
    """The position of a record in its batch's uncompressed records, and the fields that a broker reads of it."""

    start: int
    end: int
    offset: int
    timestamp_delta: int  # ms
    key_start: int
    key_size: int  # bytes; -1: no key
    value_at: int  # where the length of the value starts
    is_tombstone: bool

    def key(self, data: bytes) -> bytes | None:
        """Return the key; `data` holds the batch's uncompressed records."""
        return None if self.key_size < 0 else data[self.key_start : self.value_at]


def raw_records(batch: RecordBatch, data: bytes, first: int = 0) -> Iterator[RawRecord]:
    """Yield the records in `data`, the uncompressed records of the batch, from record number `first` on.

    A broker does not read records when it appends them, so a producer's lengths and deltas may be wrong.  Raises
    INVALID_RECORD where a record contradicts its batch, or where the records do not fill `data`.

    A number below 64 has one byte, as most of these numbers have.  Reading such a byte here, and not by a call, makes
    the loop 1.3 times as fast.
    """
    previous_delta, data_end, new = first - 1, len(data), tuple.__new__
    base_offset, last_delta, base_timestamp = batch.base_offset, batch.last_offset_delta, batch.base_timestamp
    try:
        position = _position_of(first, data)
        for _ in range(first, batch.records_count):
            start = position
            it = data[position]
            length, position = (it >> 1 ^ -(it & 1), position + 1) if it < 0x80 else read_varint(data, position)
            end, position = position + length, position + 1  # 1: the attributes
            it = data[position]
            time_delta, position = (it >> 1 ^ -(it & 1), position + 1) if it < 0x80 else read_varint(data, position)
            it = data[position]
            delta, position = (it >> 1 ^ -(it & 1), position + 1) if it < 0x80 else read_varint(data, position)
            key_size, key_start = read_varint(data, position)
            position = key_start + key_size if key_size > 0 else key_start
            if not (
                position < end <= data_end  # at least the value's length follows the key
                and previous_delta < delta <= last_delta
                and OLDEST <= base_timestamp + time_delta <= MAX_INT64
            ):
                why = f"claims {length} bytes, offset delta {delta}, timestamp delta {time_delta}"
                raise _invalid(f"the record at {start} of its batch {why}")
            is_tombstone = data[position] == NULL
            fields = start, end, base_offset + delta, time_delta, key_start, key_size, position, is_tombstone
            yield new(RawRecord, fields)
            position, previous_delta = end, delta
    except (IndexError, VarintError) as error:
        raise _invalid(f"a record of the batch cannot be read: {error}") from error
    if position != data_end:
        raise _invalid(f"the records end at {position} of {data_end} bytes")


def _position_of(number: int, data: bytes) -> int:
    """Return where a record starts, found by the lengths of those before it.  Raises IndexError, VarintError."""
    position = 0
    for _ in range(number):
        length, start = read_varint(data, position)
        if length < 0:
            raise VarintError(f"the record at {position} of its batch claims {length} bytes")
        position = start + length
    return position


def keys_of(batch: Batch, limit: int = DEFAULT_LIMIT) -> tuple[Sequence[bytes], Sequence[int]]:
    """Return the keys of the records that have one, and the offsets of these records.

    Raises KafkaError: MESSAGE_TOO_LARGE where the batch holds more than `limit` bytes or MOST_RECORDS, INVALID_RECORD.
    """
    if not isinstance(batch, RecordBatch):
        records = [(record.key, record.offset) for record in _message_records(batch, limit) if record.key is not None]
        return [key for key, _ in records], [offset for _, offset in records]
    data = _uncompressed(batch, limit)
    if batch.has_all_records and abs(batch.base_timestamp) < _ANY_DELTA_FITS:
        keys = plain_keys(data, batch.records_count)
        if keys is not None:
            return keys, range(batch.base_offset, batch.last_offset + 1)
    raws = ((raw.key(data), raw.offset) for raw in raw_records(batch, data))
    with_key = [(key, offset) for key, offset in raws if key is not None]
    return [key for key, _ in with_key], [offset for _, offset in with_key]


def filter_batch(
    batch: Batch, keep: Keep, *, delete_horizon: int | None = None, limit: int = DEFAULT_LIMIT
) -> bytes | memoryview | None:
    """Return the batch with the records for which `keep` is true, or None if no record stays.

    If all records stay, the result is the batch's own bytes.  A batch v2 whose tombstones stay and that has no delete
    horizon (ms) yet gets `delete_horizon`.  Raises KafkaError as `keys_of` does.
    """
    if isinstance(batch, Message):
        return _filter_message(batch, keep, limit)
    data = _uncompressed(batch, limit)
    parts = _parts(batch, data, keep)
    return _with_parts(batch, data, parts, keep, delete_horizon) if parts.records_count else None


def keep_offsets(
    batch: RecordBatch, offsets: Sequence[int], *, delete_horizon: int | None = None, limit: int = DEFAULT_LIMIT
) -> bytes | memoryview | None:
    """Do what `filter_batch` does for a batch that has all its records, when the offsets to keep are known.

    `offsets` ascend, their records have keys, and `keys_of` has read the batch.
    """
    if not offsets:
        return None
    data = batch.uncompressed(limit)
    parts = plain_parts(data, [offset - batch.base_offset for offset in offsets])
    kept = set(offsets)
    if parts is None:
        parts = _parts(batch, data, lambda offset, *_: offset in kept)
    return _with_parts(batch, data, parts, lambda offset, *_: offset in kept, delete_horizon)


def _parts(batch: RecordBatch, data: bytes, keep: Keep) -> Parts:
    """Find the records for which `keep` is true.  Neighbours become one part, so that few parts hold many records."""
    view, parts, count, newest, has_tombstones = memoryview(data), list[memoryview](), 0, -MAX_INT64, False
    start = end = 0  # of the records that stay and were not added to `parts` yet
    for raw in raw_records(batch, data):
        if keep(raw.offset, raw.key(data), raw.is_tombstone):
            if raw.start != end:
                parts.append(view[start:end])
                start = raw.start
            end, count = raw.end, count + 1
            newest, has_tombstones = max(newest, raw.timestamp_delta), has_tombstones or raw.is_tombstone
    return Parts([*parts, view[start:end]], count, newest, has_tombstones)


def _with_parts(
    batch: RecordBatch, data: bytes, parts: Parts, keep: Keep, delete_horizon: int | None
) -> bytes | memoryview:
    if parts.has_tombstones and batch.delete_horizon is None and delete_horizon is not None:
        moved, newest = _with_base_timestamp(batch, data, keep, delete_horizon), _newest(batch, parts.newest)
        return batch.with_records(moved, parts.records_count, newest, base_timestamp=delete_horizon)
    if parts.records_count == batch.records_count:
        return batch.view
    return batch.with_records(b"".join(parts.records), parts.records_count, _newest(batch, parts.newest))


def _newest(batch: RecordBatch, newest_delta: int) -> int:
    """Return the greatest timestamp (ms) of records whose greatest timestamp delta is known."""
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return batch.max_timestamp  # all records have it
    return batch.base_timestamp + newest_delta


def empty_batch(batch: RecordBatch) -> bytes:
    """Return the batch without records: its producer's last sequence number and its offsets stay in the log."""
    return batch.with_records(b"", 0, batch.max_timestamp)


def with_delete_horizon(batch: RecordBatch, delete_horizon: int) -> bytes:
    """Return the batch with a delete horizon (ms).  Raises KafkaError."""
    content = _with_base_timestamp(batch, batch.uncompressed(), lambda *_: True, delete_horizon)
    return batch.with_records(content, batch.records_count, batch.max_timestamp, base_timestamp=delete_horizon)


def _with_base_timestamp(batch: RecordBatch, data: bytes, keep: Keep, base_timestamp: int) -> bytearray:
    """Return the records for which `keep` is true, for a batch with another base timestamp (ms)."""
    content, shift = bytearray(), batch.base_timestamp - base_timestamp
    for raw in raw_records(batch, data):
        if keep(raw.offset, raw.key(data), raw.is_tombstone):
            _, attributes = read_varint(data, raw.start)
            _, offset_delta = read_varint(data, attributes + 1)
            delta = VARINTS[raw.timestamp_delta + shift]
            content += VARINTS[1 + len(delta) + raw.end - offset_delta]
            content += data[attributes : attributes + 1] + delta + data[offset_delta : raw.end]
    return content


def check_readable(batch: Batch) -> None:
    """Raise MESSAGE_TOO_LARGE if a batch v2 has more records than a broker reads."""
    if isinstance(batch, RecordBatch) and batch.records_count > MOST_RECORDS:
        raise _too_many()


def _uncompressed(batch: RecordBatch, limit: int) -> bytes:
    check_readable(batch)
    return batch.uncompressed(limit)


def _message_records(message: Message, limit: int) -> list[Record]:
    records = list(islice(message.records(limit), MOST_RECORDS + 1))
    if len(records) > MOST_RECORDS:
        raise _too_many()
    return records


def _filter_message(message: Message, keep: Keep, limit: int) -> bytes | memoryview | None:
    records = _message_records(message, limit)
    kept = [record for record in records if keep(record.offset, record.key, record.value is None)]
    if len(kept) == len(records):
        return message.view
    return encode_message_set(kept, message.magic, message.codec, keep_offsets=True) if kept else None


def _too_many() -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch with more than {MOST_RECORDS} records")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, why)
