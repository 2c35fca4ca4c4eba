"""Filtering: a batch without some of its records, for compaction.

The filtered batch keeps its base offset, its last offset delta and its sequence numbers, and the records keep their
offsets. Compaction copies a record of a batch v2 byte for byte. That is possible because a record is encoded relative
to its batch's base offset and base timestamp, which do not change.

Tombstones are an exception. They get a *delete horizon*, the time from which on compaction may remove them. The delete
horizon replaces the batch's base timestamp (KIP-534), so each record of the batch gets another timestamp delta. All its
other bytes stay the same.

For example, a batch with base timestamp 1000 holds a tombstone with delta 20. Compaction sets the delete horizon
86,000, which becomes the base timestamp. The tombstone's timestamp is still 1020, so its delta becomes -84,980.

Compaction reads the key of a record and whether a value exists. It never reads the value or the headers. So compaction
also works for a record whose headers no client can decode.

Source: Kafka's `MemoryRecords.filterTo`, KIP-534.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.fast.compaction import Parts, plain_keys, plain_parts
from hmb.records.fast.raw_records import raw_records
from hmb.records.legacy.message import Message
from hmb.records.legacy.message_set import encode_message_set
from hmb.records.reading import Batch
from hmb.records.record import MAX_INT64, Record, TimestampType
from hmb.records.varint import VARINTS, read_varint

Keep = Callable[[int, bytes | None, bool], bool]  # (offset, key, whether the record is a tombstone) -> whether it stays
_ANY_DELTA_FITS = 1 << 62  # ms; a smaller timestamp plus any delta of a plain record fits into an int64
MOST_RECORDS = 1 << 17  # limit for a batch: filtering takes some 200 bytes and 2 us for each record


def keys_of(batch: Batch, limit: int = DEFAULT_LIMIT) -> tuple[Sequence[bytes], Sequence[int]]:
    """Return the keys of the records that have one, and the offsets of these records.

    Raises KafkaError: INVALID_RECORD, or MESSAGE_TOO_LARGE if the batch has more than `limit` bytes or MOST_RECORDS.
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
    """Return a batch with those records for which `keep` returns True, or None if no record stays.

    If all records stay, the result is the batch's own bytes. A batch v2 gets `delete_horizon` (ms) if some of its
    tombstones stay and it has no delete horizon yet. Raises the same KafkaErrors as `keys_of`.
    """
    if isinstance(batch, Message):
        return _filter_message(batch, keep, limit)
    data = _uncompressed(batch, limit)
    parts = _parts(batch, data, keep)
    return _with_parts(batch, data, parts, keep, delete_horizon) if parts.records_count else None


def keep_offsets(
    batch: RecordBatch, offsets: Sequence[int], *, delete_horizon: int | None = None, limit: int = DEFAULT_LIMIT
) -> bytes | memoryview | None:
    """Return a batch with the records at these offsets, as `filter_batch` does. The batch must have all its records.

    `offsets` are in ascending order, and their records have keys. The caller has read the batch with `keys_of`.
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
    """Return the records for which `keep` returns True. Adjacent records become one part."""
    view, parts, count, newest, has_tombstones = memoryview(data), list[memoryview](), 0, -MAX_INT64, False
    start = end = 0  # the range of kept records that is not in `parts` yet
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
    """Return the greatest timestamp (ms) of the remaining records. `newest_delta` is their greatest timestamp delta."""
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return batch.max_timestamp  # With log append time, all records have this timestamp.
    return batch.base_timestamp + newest_delta


def empty_batch(batch: RecordBatch) -> bytes:
    """Return a copy without records. It keeps the offsets and the producer's last sequence number in the log."""
    return batch.with_records(b"", 0, batch.max_timestamp)


def with_delete_horizon(batch: RecordBatch, delete_horizon: int) -> bytes:
    """Return a copy of the batch with a delete horizon (ms). Raises KafkaError if its records cannot be read."""
    content = _with_base_timestamp(batch, batch.uncompressed(), lambda *_: True, delete_horizon)
    return batch.with_records(content, batch.records_count, batch.max_timestamp, base_timestamp=delete_horizon)


def _with_base_timestamp(batch: RecordBatch, data: bytes, keep: Keep, base_timestamp: int) -> bytearray:
    """Return the records for which `keep` returns True, encoded for the base timestamp `base_timestamp` (ms)."""
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
    """Raise MESSAGE_TOO_LARGE if a batch v2 has more than MOST_RECORDS records."""
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
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"the batch has more than {MOST_RECORDS} records")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, why)
