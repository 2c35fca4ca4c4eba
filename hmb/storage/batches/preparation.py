"""Preparing records for an append: the slow work, which the broker does before it locks the log.

During an append, a thread holds the log's lock, and all other producers of the partition wait for this lock. So while
the broker holds the lock, it only assigns offsets and writes. Before it takes the lock, it prepares the records in
these steps:
- *Checks* (validation.py).
- *Compression.* If the topic's codec (`compression.type`) differs from the codec of the records, the broker
  decompresses the records and compresses them with the topic's codec. The batch then has a new codec, length and CRC,
  but the same records.
- *Timestamps.* If `message.timestamp.type=LogAppendTime`, the broker sets the timestamps of the records to its own
  time.
- *Offsets of old messages.* A record batch contains only its first offset, and the broker sets this offset under the
  lock. In the old formats v0 and v1, each message contains its own offset. So before the broker takes the lock, it
  already writes offsets into the messages: the offsets that the log would assign next. If another producer appends
  first, these offsets are in use when the broker takes the lock. The broker then changes the offsets in the messages.
  It cannot change the offsets in compressed messages v0, so it converts these messages to a record batch.

Source: Kafka's `LogValidator`. (Kafka prepares the records while it holds the lock.)
"""

from __future__ import annotations

from hmb.records import AssignedMessages, Codec, RecordBatch, assign_offsets, iter_batches, up_convert
from hmb.records.changed_batch import with_codec, with_log_append_time
from hmb.storage.batches.decoding import PREPARING
from hmb.storage.batches.validation import (
    ProducedRecords,
    check_batch,
    check_count,
    check_messages,
    check_size,
    check_sizes,
)
from hmb.storage.config import LogConfig


def prepare(
    records: ProducedRecords, config: LogConfig, now: int, expected_offset: int
) -> RecordBatch | AssignedMessages:
    """Check and convert a producer's records, so that the log can append them. `now` is in ms. Raises KafkaError."""
    if not isinstance(records, RecordBatch):
        return _prepare_messages(records, config, now, expected_offset)
    batch = records
    check_batch(batch, config, now)
    if config.compression_type != "producer" and batch.codec is not config.codec:
        assert config.codec is not None
        with PREPARING:
            batch = with_codec(batch, config.codec, config.level, limit=config.max_decompressed)
        check_size(batch, config)
    return with_log_append_time(batch, now) if config.uses_log_append_time else batch


def as_batch(messages: AssignedMessages, config: LogConfig, now: int) -> RecordBatch:
    """Convert messages v0 or v1 to one record batch.

    If `compression.type` sets no codec for the topic, the batch gets the codec of the first compressed message. `now`
    is in ms.

    Raises MESSAGE_TOO_LARGE, INVALID_TIMESTAMP.
    """
    check_count(messages.count)  # To decode and encode too many messages would take too long.
    codecs = (message.codec for message in iter_batches(messages.data) if message.codec is not Codec.NONE)
    codec = config.codec if config.codec is not None else next(codecs, Codec.NONE)
    with PREPARING:
        batch = up_convert(messages, codec, config.level, limit=config.max_decompressed)
    return with_log_append_time(batch, now) if config.uses_log_append_time else batch


def _prepare_messages(
    records: memoryview, config: LogConfig, now: int, expected_offset: int
) -> RecordBatch | AssignedMessages:
    check_sizes(records, config)
    log_append_time = now if config.uses_log_append_time else None
    limit = config.max_decompressed
    messages = assign_offsets(
        records, expected_offset, log_append_time=log_append_time, limit=limit, decompressing=PREPARING
    )
    check_messages(messages, config, now)
    if config.codec is None or all(message.codec is config.codec for message in iter_batches(messages.data)):
        return messages
    batch = as_batch(messages, config, now)
    check_size(batch, config)
    return batch
