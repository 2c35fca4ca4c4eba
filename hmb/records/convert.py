"""Conversion between formats: new records for old clients, old clients' records as a new batch.

*Down-conversion.*  A fetch below version 4 cannot take record batches, one below version 2 no timestamps.  What is
stored in a newer format is then written anew as plain messages, uncompressed; what is old enough is passed on as it
came.  What gets lost: headers, producer ids, and with v0 the timestamps.  Offsets stay.  Control batches are left out:
old clients would take them for records.  (Aborted records stay; old clients read uncommitted.)

It costs a broker what it otherwise never does: opening every batch.  And it undoes compression, so a few kilobytes may
become gigabytes: the answer ends where its bytes are used up, in the middle of a batch if need be, and the client's
next fetch goes on from there.  Kafka 4 has dropped it together with the old clients (KIP-896).

*Up-conversion.*  Where a topic has a codec of its own, messages that came in another one become a record batch, as they
do in Kafka 3 (which converts all messages).  Nothing gets lost; a key of a wrapper had no meaning.
"""

from collections.abc import Iterator

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import RecordBatch, wrap_records
from hmb.records.compression import DEFAULT_LIMIT, Codec
from hmb.records.message_set import AssignedMessages, encode_record
from hmb.records.reading import Batch, Buffer, iter_batches
from hmb.records.record import MAX_INT64, Record, encode_records


def down_convert(data: Buffer, magic: int, start_offset: int, max_bytes: int, limit: int = DEFAULT_LIMIT) -> bytes:
    """The whole batches in `data` for a client that knows formats up to `magic` (0 or 1).

    At most `max_bytes`, but at least one message; a batch decompresses to `limit` at most.  Of a batch that has to be
    converted the records below `start_offset` are left out.  The result may be empty, when there is nothing but control
    batches.
    """
    parts: list[bytes | memoryview] = []
    room = max_bytes
    for batch in iter_batches(data):
        for message, cost in _converted(batch, magic, start_offset, limit):
            room -= cost
            if parts and room < 0:
                return b"".join(parts)
            parts.append(message)
    return b"".join(parts)


def _converted(batch: Batch, magic: int, start_offset: int, limit: int) -> Iterator[tuple[bytes | memoryview, int]]:
    """Messages, each with what it costs (bytes): headers were decompressed too, though they get lost."""
    if batch.magic <= magic:
        yield batch.view, batch.size
    elif not batch.is_control:
        for record in batch.records(limit):
            if record.offset >= start_offset:
                message = encode_record(record, record.offset, magic)
                yield message, len(message) + sum(len(name) + len(value or b"") + 2 for name, value in record.headers)


def up_convert(
    messages: AssignedMessages, codec: Codec, level: int | None = None, *, limit: int = DEFAULT_LIMIT
) -> RecordBatch:
    """All the messages as one batch, which gets its offsets when it is appended."""
    base_timestamp = next(_records(messages, limit)).timestamp
    content = encode_records(_near(base_timestamp, _records(messages, limit)), None, base_timestamp)
    batch = wrap_records(content, messages.count, base_timestamp, messages.max_timestamp, codec, level)
    return RecordBatch.parse(batch)


def _records(messages: AssignedMessages, limit: int) -> Iterator[Record]:
    return (record for message in iter_batches(messages.data) for record in message.records(limit))


def _near(base_timestamp: int, records: Iterator[Record]) -> Iterator[Record]:
    """The records, as long as a batch can tell how far their timestamps are from the first one's."""
    for record in records:
        if abs(record.timestamp - base_timestamp) > MAX_INT64:
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "the timestamps are too far apart for one batch")
        yield record
