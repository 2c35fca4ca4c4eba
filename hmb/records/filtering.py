"""Filtering: removes records from a batch, for compaction.

Filtering creates a new batch with the same base offset, last offset delta and sequence numbers as the old
batch. Usually, the base timestamp also stays the same. A record (format v2) stores its offset as a difference
to the base offset, and its timestamp as a difference to the base timestamp. If both base values stay the same,
filtering can therefore copy the bytes of the remaining records.

If tombstones (records without a value) remain in a batch, the new batch gets a *delete horizon*: the time
after which compaction may remove the tombstones. Filtering stores this time in the header, in place of the
base timestamp (KIP-534).

If the batch's base timestamp changes, each record gets a new difference: its timestamp minus the new base
timestamp. Filtering then encodes the records again instead of copying their bytes.

For example, a batch has the base timestamp 1000 ms. Its tombstone has the timestamp 1020 ms, stored as the
difference 20. The delete horizon is 86,000 ms: compaction keeps the tombstone until this time. Filtering stores
86,000 ms in place of the base timestamp. The tombstone's timestamp stays 1020 ms, so its new difference is
1020 - 86,000 = -84,980.

Compaction decodes only the key of a record, and checks whether the record has a value. Compaction does not decode the
value and the headers, so it also works for a record with damaged headers.

Source: Kafka's `MemoryRecords.filterTo`, KIP-534.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import RecordBatch
from hmb.records.changed_batch import with_records
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.fast.compaction import Parts, plain_keys, plain_parts
from hmb.records.fast.raw_records import raw_records
from hmb.records.legacy.message import Message
from hmb.records.legacy.message_set import encode_message_set
from hmb.records.reading import Batch
from hmb.records.record import Record, TimestampType
from hmb.records.varint import VARINTS, read_varint

Keep = Callable[[int, bytes | None, bool], bool]  # (offset, key, is a tombstone) -> whether to keep the record
_ANY_DELTA_FITS = 1 << 62  # ms; if a base timestamp is below this limit, base timestamp + delta fits into an int64
MAX_BATCH_RECORDS = 1 << 17  # limits memory and time: filtering takes about 200 bytes and 2 microseconds per record


def keys_of(batch: Batch, limit: int = DEFAULT_LIMIT) -> tuple[Sequence[bytes], Sequence[int]]:
    """Return the keys in a batch, and the offsets of their records. Records without a key are omitted.

    Raises KafkaError: INVALID_RECORD if the records are damaged, or MESSAGE_TOO_LARGE if there are more than
    MAX_BATCH_RECORDS records, or more than `limit` uncompressed bytes.
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
    """Return the batch with only the records for which `keep` returns True, or None if no record remains.

    A tombstone is a record without a value. If a tombstone remains in a record batch (v2), the batch needs a
    delete horizon: the time (ms) after which compaction may drop the tombstone. If the batch has no delete
    horizon yet, it gets `delete_horizon`, unless this argument is None.

    If all records remain and the delete horizon does not change, the function returns the bytes of the old batch.
    Raises the same errors as `keys_of`.
    """
    if isinstance(batch, Message):
        return _filter_message(batch, keep, limit)
    data = _uncompressed(batch, limit)
    parts = _parts(batch, data, keep)
    return _with_parts(batch, data, parts, keep, delete_horizon) if parts.records_count else None


def keep_offsets(
    batch: RecordBatch, offsets: Sequence[int], *, delete_horizon: int | None = None, limit: int = DEFAULT_LIMIT
) -> bytes | memoryview | None:
    """Return the batch with only the records at `offsets`, or None if `offsets` is empty.

    The caller must have checked the batch with `keys_of`, and the batch must still contain all its records.
    The list `offsets` must be sorted, and the records at these offsets must have keys.

    If a tombstone (a record without a value) remains and the batch has no *delete horizon*, the batch gets
    `delete_horizon`. After this time (ms), compaction may drop the tombstone.
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
    """Return the records for which `keep` returns True, as slices of `data`.

    Neighbouring records share one slice.
    """
    view, count, newest, has_tombstones = memoryview(data), 0, -INT64_MAX, False
    parts: list[memoryview] = []
    start = end = 0  # positions of adjacent records that are not in `parts` yet
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
        return with_records(batch, moved, parts.records_count, newest, base_timestamp=delete_horizon)
    if parts.records_count == batch.records_count:
        return batch.view
    return with_records(batch, b"".join(parts.records), parts.records_count, _newest(batch, parts.newest))


def _newest(batch: RecordBatch, newest_delta: int) -> int:
    """Return the greatest timestamp (ms) of the records that filtering keeps.

    `newest_delta` is the greatest timestamp delta of these records.
    """
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return batch.max_timestamp  # With log append time, all records have this timestamp.
    return batch.base_timestamp + newest_delta


def empty_batch(batch: RecordBatch) -> bytes:
    """Return a copy of the batch without records. Its header still contains the offsets and the sequence numbers."""
    return with_records(batch, b"", 0, batch.max_timestamp)


def with_delete_horizon(batch: RecordBatch, delete_horizon: int) -> bytes:
    """Return a copy of the batch with the delete horizon `delete_horizon` (ms).

    The delete horizon is the time after which compaction may remove the batch's tombstones, or the marker of a control
    batch (KIP-534). Raises KafkaError if the records cannot be decoded.
    """
    content = _with_base_timestamp(batch, batch.uncompressed(), lambda *_: True, delete_horizon)
    return with_records(batch, content, batch.records_count, batch.max_timestamp, base_timestamp=delete_horizon)


def _with_base_timestamp(batch: RecordBatch, data: bytes, keep: Keep, base_timestamp: int) -> bytearray:
    """Return the records for which `keep` returns True, encoded for a batch with a new base timestamp (ms).

    A record stores only the difference between its timestamp and the base timestamp of its batch. The function
    stores a new difference in each record, so that the timestamp of the record stays the same.
    """
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
    """Raise MESSAGE_TOO_LARGE if a record batch (v2) has more than MAX_BATCH_RECORDS records."""
    if isinstance(batch, RecordBatch) and batch.records_count > MAX_BATCH_RECORDS:
        raise _too_many()


def _uncompressed(batch: RecordBatch, limit: int) -> bytes:
    check_readable(batch)
    return batch.uncompressed(limit)


def _message_records(message: Message, limit: int) -> list[Record]:
    records = list(islice(message.records(limit), MAX_BATCH_RECORDS + 1))
    if len(records) > MAX_BATCH_RECORDS:
        raise _too_many()
    return records


def _filter_message(message: Message, keep: Keep, limit: int) -> bytes | memoryview | None:
    records = _message_records(message, limit)
    kept = [record for record in records if keep(record.offset, record.key, record.value is None)]
    if len(kept) == len(records):
        return message.view
    return encode_message_set(kept, message.magic, message.codec, keep_offsets=True) if kept else None


def _too_many() -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"the batch has more than {MAX_BATCH_RECORDS} records")
