"""Finds the batches in a buffer and decodes their records, in all three formats of Kafka.

One log may contain batches in all three formats, because not all clients of a cluster are upgraded at the same time. In
each format, the byte at position 16 is the magic, which is the number of the format. The magic determines the class
that this module returns:
    byte 16 = 0, 1    Message       (`legacy.message`)
    byte 16 = 2       RecordBatch   (`batch`)

A broker sends at most as many bytes as the client requested, so a Fetch response may end in the middle of a batch. For
example, a client requests 1,000 bytes, and each batch has 300 bytes. The client receives three batches and 100 bytes of
the fourth. `iter_batches` stops before this incomplete batch, without an error. The client requests the batch again in
its next Fetch request.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from hmb.protocol.errors import corrupt_message
from hmb.records.batch import LOG_OVERHEAD, MAGIC, MAGIC_POSITION, RECORD_BATCH_OVERHEAD, RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.legacy.message import MESSAGE_OVERHEAD, Message
from hmb.records.record import Record

Buffer = bytes | bytearray | memoryview
Batch = RecordBatch | Message

HEADER_PEEK = RECORD_BATCH_OVERHEAD  # bytes; the largest header of the three formats
_LENGTH = Struct(">8xi")
_OVERHEAD = (*MESSAGE_OVERHEAD, RECORD_BATCH_OVERHEAD)  # the smallest size of a batch (bytes) for magic 0, 1 and 2


def parse_batch(buffer: Buffer, position: int = 0) -> Batch:
    """Decode the header of the batch or message at `position`. Raises CORRUPT_MESSAGE if the header is not complete."""
    if position + MAGIC_POSITION >= len(buffer):
        left = len(buffer) - position
        raise corrupt_message(f"only {left} bytes are left, but a batch has at least {min(_OVERHEAD)}")
    if buffer[position + MAGIC_POSITION] == MAGIC:
        return RecordBatch.parse(buffer, position)
    return Message.parse(buffer, position)


def batch_size(buffer: Buffer, position: int = 0) -> int:
    """Return the size in bytes of the batch or message that begins at `position`.

    The buffer must contain at least the first 17 bytes of the batch or message. Raises CORRUPT_MESSAGE if these bytes
    are not the start of a batch or message.
    """
    size = LOG_OVERHEAD + int(_LENGTH.unpack_from(buffer, position)[0])
    magic = buffer[position + MAGIC_POSITION]
    if magic > MAGIC or size < _OVERHEAD[magic]:
        raise corrupt_message(f"neither a batch nor a message begins at {position}")
    return size


def first_batch(buffer: Buffer) -> Batch | None:
    """Return the first batch or message in the buffer. If the buffer ends inside it, return None.

    Raises CORRUPT_MESSAGE if the buffer begins with bytes that are neither a batch nor a message.
    """
    if len(buffer) <= MAGIC_POSITION or batch_size(buffer) > len(buffer):
        return None
    return parse_batch(buffer)


def stored_offset(batch: Batch) -> int:
    """Return the offset in the first bytes of a batch or message. Do not decompress anything.

    A record batch stores the offset of its first record. A wrapper (a compressed message set) stores the offset of
    its last message. The property `base_offset` is slower, because it decompresses a wrapper to find the first
    offset.
    """
    return batch.base_offset if isinstance(batch, RecordBatch) else batch.offset


def iter_batches(buffer: Buffer) -> Iterator[Batch]:
    """Yield the batches and messages in the buffer. If the last one is incomplete, stop before it.

    Raises CORRUPT_MESSAGE if the buffer contains bytes that are neither a batch nor a message.
    """
    view = memoryview(buffer)
    position, end = 0, len(view)
    while position + MAGIC_POSITION < end:
        size = batch_size(view, position)
        if position + size > end:
            return
        yield parse_batch(view, position)
        position += size


def read_records(buffer: Buffer, *, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
    """Check each batch in the buffer, and yield its records.

    Control records and an incomplete last batch are omitted.
    """
    for batch in iter_batches(buffer):
        batch.check()
        if not batch.is_control:
            yield from batch.records(limit)
