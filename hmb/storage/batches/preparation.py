"""Preparing records for an append: all work that takes time.

An append holds the log's lock, for which all other producers of the partition wait, and its readers for a moment. So
under the lock it only assigns offsets and writes. Before that, the records are

- *checked* (validation.py);
- *compressed* as the topic wants it (`compression.type`), where they came in another codec. They are decompressed and
  compressed again, which changes a batch's codec, length and CRC, and none of its records;
- *stamped* with the broker's time (`message.timestamp.type=LogAppendTime`);
- given offsets, where the format has many of them. A batch v2 has one number for them. Each old message has its own,
  so old messages get the offsets that are next at this moment. If another append is faster, they are moved under the
  lock. Compressed messages v0 cannot be moved, and become a batch that can.

Source: Kafka's `LogValidator`, which does it under the lock.
"""

from __future__ import annotations

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import AssignedMessages, Codec, RecordBatch, assign_offsets, iter_batches, up_convert
from hmb.records.reading import MAGIC_POSITION
from hmb.storage.batches.opening import PREPARING
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
    """Return the records of a producer, ready to be appended. Raises KafkaError; `now` is in ms."""
    if isinstance(records, RecordBatch):
        batch, length = records, len(records.view)
    elif len(records) <= MAGIC_POSITION:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(records)} bytes are no batch")
    elif records[MAGIC_POSITION] < 2:
        return _prepare_messages(records, config, now, expected_offset)
    else:
        batch, length = RecordBatch.parse(records), len(records)
    check_batch(batch, length, config, now)
    if config.compression_type != "producer" and batch.codec is not config.codec:
        assert config.codec is not None
        with PREPARING:
            batch = batch.with_codec(config.codec, config.level, limit=config.max_decompressed)
        check_size(batch, config)
    return batch if config.message_timestamp_type == "CreateTime" else batch.with_log_append_time(now)


def prepare_own(records: ProducedRecords, config: LogConfig, now: int, expected_offset: int) -> RecordBatch:
    """Return a batch that the broker made itself: only its size may be wrong. Raises MESSAGE_TOO_LARGE."""
    batch = records if isinstance(records, RecordBatch) else RecordBatch.parse(records)
    check_size(batch, config)
    return batch


def as_batch(messages: AssignedMessages, config: LogConfig, now: int) -> RecordBatch:
    """Return old messages as one batch, in the topic's codec or in that of the first one that is compressed.

    Raises MESSAGE_TOO_LARGE, INVALID_TIMESTAMP.
    """
    check_count(messages.count)  # each is decoded and encoded again
    codecs = (message.codec for message in iter_batches(messages.data) if message.codec is not Codec.NONE)
    codec = config.codec if config.codec is not None else next(codecs, Codec.NONE)
    with PREPARING:
        batch = up_convert(messages, codec, config.level, limit=config.max_decompressed)
    return batch if config.message_timestamp_type == "CreateTime" else batch.with_log_append_time(now)


def _prepare_messages(
    records: memoryview, config: LogConfig, now: int, expected_offset: int
) -> RecordBatch | AssignedMessages:
    check_sizes(records, config)
    log_append_time = None if config.message_timestamp_type == "CreateTime" else now
    limit = config.max_decompressed
    messages = assign_offsets(
        records, expected_offset, log_append_time=log_append_time, limit=limit, opening=PREPARING
    )
    check_messages(messages, config, now)
    if config.codec is None or all(message.codec is config.codec for message in iter_batches(messages.data)):
        return messages
    batch = as_batch(messages, config, now)
    check_size(batch, config)
    return batch
