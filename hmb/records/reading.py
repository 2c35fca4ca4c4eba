"""Parses the batches in a buffer and decodes their records, in all formats.

One log may contain all three formats, because clients are upgraded one after another. The magic is at byte 16 of each
format, so one byte identifies the format::

    byte 16 = 0, 1    Message       (`legacy.message`)
    byte 16 = 2       RecordBatch   (`batch`)

A Fetch response may end inside a batch, because a broker cuts the records at the requested number of bytes. Iteration
stops before an incomplete batch without an error. The client's next fetch begins at the incomplete batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.legacy.message import MESSAGE_OVERHEAD, Message
from hmb.records.record import Record

Buffer = bytes | bytearray | memoryview
Batch = RecordBatch | Message

MAGIC_POSITION = 16
HEADER_PEEK = RECORD_BATCH_OVERHEAD  # bytes; enough for the header of a batch of any magic
_LENGTH = Struct(">8xi")
_OVERHEAD = (*MESSAGE_OVERHEAD, RECORD_BATCH_OVERHEAD)  # bytes of the smallest batch or message; the index is the magic


def parse_batch(buffer: Buffer, position: int = 0) -> Batch:
    """Return the batch or message at a position. Raises CORRUPT_MESSAGE if the buffer has no whole header there."""
    if position + MAGIC_POSITION >= len(buffer):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(buffer) - position} bytes are too few for a batch")
    if buffer[position + MAGIC_POSITION] == 2:
        return RecordBatch.parse(buffer, position)
    return Message.parse(buffer, position)


def batch_size(buffer: Buffer, position: int = 0) -> int:
    """Return the size in bytes of the batch or message at a position.

    The buffer must contain the first 17 bytes. Raises CORRUPT_MESSAGE if no batch or message begins with them.
    """
    size = LOG_OVERHEAD + int(_LENGTH.unpack_from(buffer, position)[0])
    magic = buffer[position + MAGIC_POSITION]
    if magic > 2 or size < _OVERHEAD[magic]:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"neither a batch nor a message begins at {position}")
    return size


def iter_batches(buffer: Buffer) -> Iterator[Batch]:
    """Yield the complete batches and messages in the buffer. Stop before an incomplete batch or message.

    Raises CORRUPT_MESSAGE at bytes that are not a batch or a message.
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
    """Check the complete batches in the buffer, and yield their records without control records."""
    for batch in iter_batches(buffer):
        batch.check()
        if not batch.is_control:
            yield from batch.records(limit)
