"""Down-conversion: new records for clients that only know old formats.

A fetch below version 4 cannot take record batches, one below version 2 no timestamps.  What is stored in a newer
format is then written anew as plain messages, uncompressed; what is old enough is passed on as it came.  What gets
lost: headers, producer ids, and with v0 the timestamps.  Offsets stay.  Control batches are left out: old clients
would take them for records.  (Aborted records stay; old clients read uncommitted.)

It costs a broker what it otherwise never does: opening every batch.  Kafka 4 has dropped it together with the old
clients (KIP-896).
"""

from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.message_set import encode_message_set
from hmb.records.reading import Buffer, iter_batches


def down_convert(data: Buffer, magic: int, start_offset: int, limit: int = DEFAULT_LIMIT) -> bytes:
    """The whole batches in `data` for a client that knows formats up to `magic` (0 or 1).

    Of a batch that has to be converted the records below `start_offset` are left out.  The result may be empty, when
    there is nothing but control batches.
    """
    parts: list[bytes | memoryview] = []
    for batch in iter_batches(data):
        if batch.magic <= magic:
            parts.append(batch.view)
        elif not batch.is_control:
            records = [record for record in batch.records(limit) if record.offset >= start_offset]
            parts.append(encode_message_set(records, magic, keep_offsets=True))
    return b"".join(parts)
