"""Answers for clients from before record batches: slices of a log, converted down (records/convert.py).

Such a client goes on at the offset after the last message that it has got.  A slice in which there is nothing for it,
because it holds only markers of transactions, or batches whose records compaction has taken, would bring it back with
the same offset again and again, and what lies behind would never be read.  So the broker goes on in its place, until
there is a message or the log ends.

Kafka up to 3 answered such a slice with the beginning of a message that does not exist; its own consumer took that for
a message above its fetch size, and stopped.
"""

from __future__ import annotations

from hmb.records.convert import down_convert
from hmb.records.reading import iter_batches
from hmb.storage.log import Log
from hmb.storage.log_reading import LogSlice

SKIPPED_AT_ONCE = 1 << 20  # bytes


def converted(found: LogSlice, log: Log, magic: int, offset: int, max_bytes: int, limit: int) -> memoryview:
    """Messages of `magic` (0 or 1) from `offset` on: those in the slice that was found there, or what comes behind it.

    At most `max_bytes`, but at least one message; a batch decompresses to `limit` at most.  Raises KafkaError.
    """
    while found.records is not None:
        data = found.records.read()
        if messages := down_convert(data, magic, offset, max_bytes, limit):
            return memoryview(messages)
        offset = max(batch.last_offset for batch in iter_batches(data)) + 1
        found = log.read(offset, max(max_bytes, SKIPPED_AT_ONCE))
    return memoryview(b"")
