"""From bytes to batches to records, whatever format they are in.

A log may hold all three formats side by side, in the order in which its clients grew up.  The magic stands at byte 16
of each, so one look tells them apart.  What a fetch returns may end inside a batch (before version 3 a broker cut at
max_bytes and left it to the client to notice): iteration stops there, silently.
"""

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
HEADER_PEEK = RECORD_BATCH_OVERHEAD  # bytes that show any batch's header, whatever its magic
_LENGTH = Struct(">8xi")
_OVERHEAD = (*MESSAGE_OVERHEAD, RECORD_BATCH_OVERHEAD)  # by magic


def parse_batch(buffer: Buffer, position: int = 0) -> Batch:
    """Return the batch or message at this position.  Raises CORRUPT_MESSAGE where the buffer has no whole header."""
    if position + MAGIC_POSITION >= len(buffer):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(buffer) - position} bytes are too few for a batch")
    if buffer[position + MAGIC_POSITION] == 2:
        return RecordBatch.parse(buffer, position)
    return Message.parse(buffer, position)


def batch_size(buffer: Buffer, position: int = 0) -> int:
    """Return the size in bytes of the batch or message at a position.

    Its first 17 bytes are there.  Raises CORRUPT_MESSAGE where no batch or message can begin with them.
    """
    size = LOG_OVERHEAD + int(_LENGTH.unpack_from(buffer, position)[0])
    magic = buffer[position + MAGIC_POSITION]
    if magic > 2 or size < _OVERHEAD[magic]:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"neither batch nor message at {position}")
    return size


def iter_batches(buffer: Buffer) -> Iterator[Batch]:
    """Yield the whole batches and messages in the buffer, up to one that the buffer's end cuts.

    Raises CORRUPT_MESSAGE at bytes that are no batch or message.
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
    """Yield all records of the whole batches in the buffer, each batch checked; control records are left out."""
    for batch in iter_batches(buffer):
        batch.check()
        if not batch.is_control:
            yield from batch.records(limit)
