"""Functions that return a changed copy of a batch, or an empty batch.

If you read HMB for the first time, skip this module. A broker stores most batches as it receives them. This
module changes a batch in the other cases:
- The broker sets the timestamps of a topic (LogAppendTime), or the topic has another codec than the batch.
- Compaction removes records from a batch.
- A producer sends a batch again, with the numbers of a new epoch.
- A mirror copies a batch to another cluster, and sends the copy as a producer does.

A function that changes a batch writes a new header with a new CRC, because the CRC covers the changed fields.
For example, a batch contains 100 uncompressed records, and `with_codec` compresses them with zstd. The new
batch contains the same records with the same offsets. Its header contains another length, another codec and
another CRC.
"""

from __future__ import annotations

from hmb.protocol.enums import NO_LEADER_EPOCH
from hmb.records.batch import (
    AFTER_CRC,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    RECORD_BATCH_OVERHEAD,
    TRANSACTIONAL_BIT,
    RecordBatch,
    assemble,
)
from hmb.records.compression import CODEC_MASK, DEFAULT_LIMIT, Codec, compress
from hmb.records.producer_numbers import NO_BATCH_NUMBERS, BatchNumbers
from hmb.records.record import NO_TIMESTAMP, TimestampType

# These are the header fields after the CRC. The last field of RecordBatch, `view`, is not a part of the header, so the
# slice leaves it out.
_NAMES_AFTER_CRC = RecordBatch._fields[RecordBatch._fields.index("attributes") : -1]


def is_sendable(batch: RecordBatch) -> bool:
    """Return whether a producer can send this batch without encoding its records again.

    All three conditions must be true:

    - Compaction has not removed any records from the batch.
    - The producer has set the timestamps, not the broker.
    - The header contains the base timestamp. Compaction can replace this timestamp by a delete horizon: the time after
      which compaction may remove the batch's tombstones or its transaction marker.
    """
    has_own_times = batch.timestamp_type is TimestampType.CREATE_TIME and batch.delete_horizon is None
    return batch.has_all_records and has_own_times


def with_log_append_time(batch: RecordBatch, now: int) -> RecordBatch:
    """Return a copy in which all records have the timestamp `now` (ms).

    The broker calls this function for topics with message.timestamp.type=LogAppendTime.
    """
    attributes = batch.attributes | LOG_APPEND_TIME_BIT
    return RecordBatch.parse(_copy(batch, _content(batch), attributes=attributes, max_timestamp=now))


def with_codec(
    batch: RecordBatch, codec: Codec, level: int | None = None, *, limit: int = DEFAULT_LIMIT
) -> RecordBatch:
    """Return a copy of the batch. The records in the copy are compressed with the codec `codec`.

    Raises MESSAGE_TOO_LARGE if the uncompressed records have more than `limit` bytes.
    """
    content = compress(codec, batch.uncompressed(limit), level=level)
    return RecordBatch.parse(_copy(batch, content, attributes=(batch.attributes & ~CODEC_MASK) | codec))


def with_numbers(batch: RecordBatch, numbers: BatchNumbers) -> bytes:
    """Return a copy of the batch with another producer id, producer epoch and base sequence number."""
    return _copy(batch, _content(batch), **numbers._asdict())


def as_produced(batch: RecordBatch, numbers: BatchNumbers = NO_BATCH_NUMBERS, *, transactional: bool = False) -> bytes:
    """Return a copy of the batch. A producer can send this copy to a broker.

    The copy has the base offset 0 and no leader epoch. Its producer id, producer epoch and base sequence number
    come from `numbers`. If `transactional` is true, the copy belongs to a transaction.
    """
    attributes = batch.attributes & ~TRANSACTIONAL_BIT | (TRANSACTIONAL_BIT if transactional else 0)
    changes = {"base_offset": 0, "partition_leader_epoch": NO_LEADER_EPOCH, "attributes": attributes}
    return _copy(batch, _content(batch), **changes, **numbers._asdict())


def with_records(
    batch: RecordBatch,
    content: bytes | bytearray,
    count: int,
    max_timestamp: int,
    base_timestamp: int | None = None,
) -> bytes:
    """Return a copy of the batch with other records.

    The offsets, the producer id, the epochs and the sequence numbers stay the same.

    `content` contains the `count` new records, uncompressed. The function compresses them with the batch's
    codec. In the new header, the greatest timestamp is `max_timestamp` (ms).

    A delete horizon is the time (ms) after which compaction may remove a batch's tombstones or its
    transaction marker. The header stores it in the field of the base timestamp (KIP-534). To set a delete
    horizon, pass it as `base_timestamp`.
    """
    codec = batch.codec if count else Codec.NONE
    attributes = (batch.attributes & ~CODEC_MASK) | codec | (0 if base_timestamp is None else DELETE_HORIZON_BIT)
    return _copy(
        batch,
        compress(codec, content),
        attributes=attributes,
        base_timestamp=batch.base_timestamp if base_timestamp is None else base_timestamp,
        max_timestamp=max_timestamp,
        records_count=count,
    )


def encode_empty_batch(first_offset: int, last_offset: int, leader_epoch: int) -> bytes:
    """Return a batch that has no records, but covers the offsets from `first_offset` to `last_offset`.

    One batch can cover at most 2^31 offsets.
    """
    times = (NO_TIMESTAMP, NO_TIMESTAMP)
    after_crc = AFTER_CRC.pack(0, last_offset - first_offset, *times, *NO_BATCH_NUMBERS, 0)
    return assemble(first_offset, leader_epoch, after_crc, b"")


def _content(batch: RecordBatch) -> memoryview:
    return batch.view[RECORD_BATCH_OVERHEAD:]


def _copy(batch: RecordBatch, content: bytes | bytearray | memoryview, **changes: int) -> bytes:
    """Return a copy of the batch. `changes` are new header values; the bytes `content` follow the header."""
    fields = batch._asdict() | changes
    after_crc = AFTER_CRC.pack(*[fields[name] for name in _NAMES_AFTER_CRC])
    return assemble(fields["base_offset"], fields["partition_leader_epoch"], after_crc, content)
