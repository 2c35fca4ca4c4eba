"""Up-conversion: converts messages v0 and v1 to one record batch.

The broker converts the messages of an old producer in two cases:
- The topic setting `compression.type` requires a codec that a message does not have. The broker then writes
  a record batch with the topic's codec.
- The offsets in compressed messages of version 0 must change. For example, two messages have the offsets
  500 and 501, but the broker appends other records at these offsets first. For new offsets, it would have
  to compress the messages again, so it creates a record batch instead.

A record batch can store everything that a message contains, so the conversion loses no data. Kafka 3 converts all
messages v0 and v1 that producers send.

Source: Kafka's `RecordsUtil`.
"""

from __future__ import annotations

from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import RecordBatch, wrap_records
from hmb.records.compression import DEFAULT_LIMIT, Codec
from hmb.records.legacy.message import Message
from hmb.records.legacy.message_set import AssignedMessages
from hmb.records.reading import iter_batches
from hmb.records.record import NO_TIMESTAMP, append_record


def up_convert(
    messages: AssignedMessages, codec: Codec, level: int | None = None, *, limit: int = DEFAULT_LIMIT
) -> RecordBatch:
    """Convert all messages to one record batch. The broker sets the base offset when it appends the batch.

    Raises INVALID_TIMESTAMP if the difference between a timestamp and the first timestamp does not fit into an int64.
    """
    content, count, base_timestamp = bytearray(), 0, NO_TIMESTAMP
    for message in iter_batches(messages.data):
        assert isinstance(message, Message)
        log_append_time = message.log_append_time
        for _, inner in message.entries(limit):
            timestamp = inner.timestamp if log_append_time is None else log_append_time
            if not count:
                base_timestamp = timestamp
            if abs(timestamp - base_timestamp) > INT64_MAX:
                raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "the timestamps are too far apart for one batch")
            append_record(content, timestamp - base_timestamp, count, *inner.key_and_value(), ())
            count += 1
    batch = wrap_records(content, count, base_timestamp, messages.max_timestamp, codec, level)
    return RecordBatch.parse(batch)
