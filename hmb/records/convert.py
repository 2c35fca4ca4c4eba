"""Down-conversion: new records for clients that only know old formats.

A fetch below version 4 cannot take record batches, one below version 2 no timestamps.  What is stored in a newer
format is then written anew as plain messages, uncompressed; what is old enough is passed on as it came.  What gets
lost: headers, producer ids, and with v0 the timestamps.  Offsets stay.  Control batches are left out: old clients
would take them for records.  (Aborted records stay; old clients read uncommitted.)

It costs a broker what it otherwise never does: opening every batch.  And it undoes compression, so a few kilobytes may
become gigabytes: the answer ends where its bytes are used up, in the middle of a batch if need be, and the client's
next fetch goes on from there.  Kafka 4 has dropped it together with the old clients (KIP-896).
"""

from collections.abc import Iterator

from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.message_set import encode_record
from hmb.records.reading import Batch, Buffer, iter_batches


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
