"""Batches with some of their records taken out: what compaction leaves of them.

A batch keeps its place: base offset, last offset delta and sequence numbers stay as they were, and so do the offsets of
its records.  Within a batch v2 a record that is kept is kept byte for byte, for it is written relative to the batch's
base offset and base timestamp, which do not change.  The one exception is a batch whose tombstones get their *delete
horizon*, the time from which on they may be dropped: it takes the place of the base timestamp (KIP-534), so its records
are written anew.

Source: Kafka's `MemoryRecords.filterTo`, KIP-534.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.message import Message
from hmb.records.message_set import encode_message_set
from hmb.records.plain_records import NULL, Parts, plain_keys, plain_parts
from hmb.records.reading import Batch
from hmb.records.record import MAX_INT64, TimestampType, encode_records
from hmb.records.varint import VarintError, read_varint

Keep = Callable[[int, bytes | None, bool], bool]  # offset, key, is it a tombstone (a record without a value)
_ANY_DELTA_FITS = 1 << 62  # a timestamp below it stays an int64 with any delta that a plain record may have


class RawRecord(NamedTuple):
    """Where a record lies in its batch's uncompressed records, and what compaction asks of it."""

    start: int
    end: int
    offset: int
    timestamp_delta: int
    key: bytes | None
    is_tombstone: bool


def raw_records(batch: RecordBatch, data: bytes) -> Iterator[RawRecord]:
    """The records in `data`, the uncompressed records of the batch; INVALID_RECORD where they do not fill it.

    Nothing that a record says of itself is believed: nobody has looked into a batch v2 since its producer made it.
    """
    position, previous_delta = 0, -1
    try:
        for _ in range(batch.records_count):
            start = position
            length, position = read_varint(data, position)
            end = position + length
            timestamp_delta, position = read_varint(data, position + 1)  # 1: the attributes
            offset_delta, position = read_varint(data, position)
            size, position = read_varint(data, position)
            key = None if size < 0 else data[position : (position := position + size)]
            if not position < end <= len(data):  # at least the value's length follows the key
                raise _invalid(f"the record at {start} of its batch claims {length} bytes and cannot have them")
            if not previous_delta < offset_delta <= batch.last_offset_delta:
                raise _invalid(f"the record at {start} of its batch has offset delta {offset_delta}: not its turn")
            if not -MAX_INT64 <= batch.base_timestamp + timestamp_delta <= MAX_INT64:
                raise _invalid(f"the record at {start} of its batch has timestamp delta {timestamp_delta}")
            yield RawRecord(start, end, batch.base_offset + offset_delta, timestamp_delta, key, data[position] == NULL)
            position, previous_delta = end, offset_delta
    except (IndexError, VarintError) as error:
        raise _invalid(f"a record of the batch cannot be read: {error}") from error
    if position != len(data):
        raise _invalid(f"the records end at {position} of {len(data)} bytes")


def keys_of(batch: Batch, limit: int = DEFAULT_LIMIT) -> tuple[Sequence[bytes], Sequence[int]]:
    """The keys of those records that have one, and their offsets.  Raises KafkaError."""
    if not isinstance(batch, RecordBatch):
        records = [(record.key, record.offset) for record in batch.records(limit) if record.key is not None]
        return [key for key, _ in records], [offset for _, offset in records]
    data = batch.uncompressed(limit)
    if batch.has_all_records and abs(batch.base_timestamp) < _ANY_DELTA_FITS:
        keys = plain_keys(data, batch.records_count)
        if keys is not None:
            return keys, range(batch.base_offset, batch.last_offset + 1)
    raws = [(raw.key, raw.offset) for raw in raw_records(batch, data) if raw.key is not None]
    return [key for key, _ in raws], [offset for _, offset in raws]


def filter_batch(
    batch: Batch, keep: Keep, *, delete_horizon: int | None = None, limit: int = DEFAULT_LIMIT
) -> bytes | memoryview | None:
    """The batch with those records that are to be kept, its very bytes if these are all; None if there are none.

    A batch v2 whose tombstones are kept and that has no delete horizon (ms) yet gets the one that is given.
    """
    if isinstance(batch, Message):
        return _filter_message(batch, keep, limit)
    data = batch.uncompressed(limit)
    kept = [raw for raw in raw_records(batch, data) if keep(raw.offset, raw.key, raw.is_tombstone)]
    if not kept:
        return None
    newest = max(raw.timestamp_delta for raw in kept)
    parts = Parts([data[raw.start : raw.end] for raw in kept], newest, any(raw.is_tombstone for raw in kept))
    return _with_parts(batch, parts, [raw.offset for raw in kept], delete_horizon, limit)


def keep_offsets(
    batch: RecordBatch, offsets: Sequence[int], *, delete_horizon: int | None = None, limit: int = DEFAULT_LIMIT
) -> bytes | memoryview | None:
    """As `filter_batch`, for a batch of which none is missing, where it is known which records are to be kept.

    Their offsets grow, they have keys, and `keys_of` has looked at the batch.
    """
    if not offsets:
        return None
    parts = plain_parts(batch.uncompressed(limit), [offset - batch.base_offset for offset in offsets])
    if parts is None:
        kept = set(offsets)
        return filter_batch(batch, lambda offset, *_: offset in kept, delete_horizon=delete_horizon, limit=limit)
    return _with_parts(batch, parts, offsets, delete_horizon, limit)


def _with_parts(
    batch: RecordBatch, parts: Parts, offsets: Sequence[int], delete_horizon: int | None, limit: int
) -> bytes | memoryview:
    if parts.has_tombstones and batch.delete_horizon is None and delete_horizon is not None:
        return with_delete_horizon(batch, delete_horizon, set(offsets), limit)
    if len(offsets) == batch.records_count:
        return batch.view
    newest = batch.base_timestamp + parts.newest
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        newest = batch.max_timestamp  # it is that of all records
    return batch.with_records(b"".join(parts.records), len(offsets), newest)


def empty_batch(batch: RecordBatch) -> bytes:
    """The batch without a record: it still tells its producer's last sequence number, and where the log ends."""
    return batch.with_records(b"", 0, batch.max_timestamp)


def with_delete_horizon(
    batch: RecordBatch, delete_horizon: int, offsets: set[int] | None = None, limit: int = DEFAULT_LIMIT
) -> bytes:
    """The batch, or those of its records with these offsets, with a delete horizon (ms)."""
    records = [record for record in batch.records(limit) if offsets is None or record.offset in offsets]
    content = encode_records(records, batch.base_offset, delete_horizon)
    max_timestamp = max(record.timestamp for record in records)  # all the same with log append time
    return batch.with_records(content, len(records), max_timestamp, base_timestamp=delete_horizon)


def _filter_message(message: Message, keep: Keep, limit: int) -> bytes | memoryview | None:
    records = list(message.records(limit))
    kept = [record for record in records if keep(record.offset, record.key, record.value is None)]
    if len(kept) == len(records):
        return message.view
    return encode_message_set(kept, message.magic, message.codec, keep_offsets=True) if kept else None


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, why)
