"""Prepares messages v0 and v1 for a log. Clients older than Kafka 0.11 send messages in these formats.

The broker writes offsets into all batches and messages that it appends. A record batch contains only its first offset.
A thread can change this one field quickly while it holds the log's lock.

Each message v0 or v1 contains its own offset. To write offsets into compressed messages v0, the broker must
decompress them. If the broker held the log's lock during this slow work, other producers would have to wait.

The broker therefore writes offsets into messages v0 or v1 before it takes the lock. It uses the *expected offsets*,
the next offsets of the log. If another producer's records are appended first, these offsets are already in use. The
broker then changes the messages' offsets.

For example, a log's next offset is 500. The broker writes 500 and 501 into producer A's two messages, but then
appends three records of producer B at the offsets 500 to 502. Before it appends A's messages, the broker
changes their offsets to 503 and 504.

The broker converts messages to a record batch in two cases:
- The topic's `compression.type` requires another codec than a message has.
- The broker would have to change the offsets in compressed messages v0, because another producer's records
  already have these offsets. In a record batch, this change is quick, because the batch stores only its first
  offset.

Source: Kafka's `LogValidator`.
"""

from __future__ import annotations

from hmb.records import AssignedMessages, Codec, RecordBatch, assign_offsets, iter_batches, up_convert
from hmb.records.changed_batch import with_log_append_time
from hmb.storage.batches.decoding import PREPARING
from hmb.storage.batches.validation import check_count, check_messages, check_size, check_sizes
from hmb.storage.config import LogConfig


def prepare_messages(
    records: memoryview, config: LogConfig, now: int, expected_offset: int
) -> RecordBatch | AssignedMessages:
    """Check a producer's messages (format v0 or v1), and give them offsets from `expected_offset` on.

    If the topic's `compression.type` requires a codec that a message does not have, convert the messages to one
    record batch. `now` is in ms. Raises the errors of `Log.append`.
    """
    check_sizes(records, config)
    log_append_time = now if config.uses_log_append_time else None
    limit = config.max_decompressed
    messages = assign_offsets(
        records, expected_offset, log_append_time=log_append_time, limit=limit, decompressing=PREPARING
    )
    check_messages(messages, config, now)
    if config.codec is None or all(message.codec is config.codec for message in iter_batches(messages.data)):
        return messages
    batch = as_record_batch(messages, config, now)
    check_size(batch, config)
    return batch


def as_record_batch(messages: AssignedMessages, config: LogConfig, now: int) -> RecordBatch:
    """Convert messages v0 or v1 to one record batch.

    The topic setting `compression.type` sets the codec of the batch. If it sets no codec, the batch gets the codec
    of the first compressed message. `now` is the time in ms.

    Raises MESSAGE_TOO_LARGE, INVALID_TIMESTAMP.
    """
    check_count(messages.count)  # To decode and encode too many messages would take too long.
    codecs = (message.codec for message in iter_batches(messages.data) if message.codec is not Codec.NONE)
    codec = config.codec if config.codec is not None else next(codecs, Codec.NONE)
    with PREPARING:
        batch = up_convert(messages, codec, config.level, limit=config.max_decompressed)
    return with_log_append_time(batch, now) if config.uses_log_append_time else batch
