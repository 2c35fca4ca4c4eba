"""Answers for clients from before record batches: slices of a log, converted down (records/legacy/down_conversion.py).

Such a client goes on at the offset after the last message that it got.  A slice may hold nothing for it: only markers
of transactions, or batches whose records compaction has removed.  With an empty answer the client would ask for the
same offset again and again.  So the broker goes on in the log until a message follows or the log ends.  (Kafka up to 3
answers such a slice with the beginning of a message that does not exist.  Its own consumer takes that for a message
above its fetch size, and stops.)

An answer is converted while it is sent, a batch at a time.  A client that does not read keeps its batch in memory until
the broker closes its connection (sending.py).  CONVERTED bounds the memory of all these answers together: an answer
that finds no room waits for room before its first message.

*Damage.*  The client gets CORRUPT_MESSAGE once the damaged batch is the first one at its offset, and all records before
it without an error.  A client of version 4 or later gets the damaged bytes and finds the wrong CRC itself, at the same
offset.  Both stay there until they seek, or until the log is repaired at the broker's next start.  Kafka up to 3 does
not check the CRC, and gives an old client the changed record with a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.legacy.down_conversion import DamagedBatch, DownConversion
from hmb.storage.batches.opening import CONVERTING, report_damage
from hmb.storage.log import Log
from hmb.storage.log_reading import LogSlice

SKIPPED_AT_ONCE = 1 << 20  # bytes
MOST_CONVERTED = 64 << 20  # bytes of all answers that are converted at the same time


class Room:
    """A number of bytes that several threads share."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._changed = threading.Condition()  # guards _free; no other lock is taken under it

    @contextmanager
    def reserved(self, size: int, timeout: float) -> Iterator[None]:
        """Hold `size` bytes, or all where `size` is more.  Raises TimeoutError after `timeout` seconds of waiting."""
        size = min(size, self._size)
        with self._changed:
            if not self._changed.wait_for(lambda: self._free >= size, timeout):
                raise TimeoutError(f"no room for {size} bytes of converted records")
            self._free -= size
        try:
            yield
        finally:
            with self._changed:
                self._free += size
                self._changed.notify_all()


CONVERTED = Room(MOST_CONVERTED)
PATIENCE = 60.0  # seconds that an answer waits for room: more than a client that does not read keeps it


class ConvertedRecords:
    """The records of an answer, which are converted while they are sent."""

    def __init__(self, conversion: DownConversion) -> None:
        self._conversion = conversion

    @property
    def size(self) -> int:
        """The number of bytes that `pieces` yields."""
        return self._conversion.size

    def pieces(self) -> Generator[bytes | memoryview, None, None]:
        """Yield the messages.  Raises OSError where they can no longer be converted as they were measured."""
        with CONVERTED.reserved(self._conversion.memory, PATIENCE):
            pieces = self._conversion.pieces()
            while True:
                try:
                    with CONVERTING:
                        piece = next(pieces, None)
                except KafkaError as error:
                    raise OSError(f"the records have changed since they were measured: {error}") from error
                if piece is None:
                    return
                yield piece


def converted(
    found: LogSlice, log: Log, magic: int, offset: int, max_bytes: int, limit: int
) -> ConvertedRecords | memoryview:
    """Return messages of `magic` (0 or 1) from `offset` on: those of the slice that was found there, or later ones.

    They take at most `max_bytes`, but at least one message is included.  A batch decompresses to `limit` bytes at most.
    The result is empty where the log ends without a message.  Raises KafkaError: CORRUPT_MESSAGE where the first batch
    is damaged, MESSAGE_TOO_LARGE, INVALID_RECORD.
    """
    while found.records is not None and found.segment is not None:
        read, start = found.records.file.read, found.records.position
        region = range(start, start + found.records.size)
        try:
            with CONVERTING:
                conversion = DownConversion(read, region, magic, offset, max_bytes, limit)
        except DamagedBatch as error:
            report_damage(found.segment, error.position, error.batch, error)
            raise
        if conversion.size:
            return ConvertedRecords(conversion)
        if conversion.next_offset <= offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{found.segment.path} ends inside the batch at {start}")
        offset = conversion.next_offset
        found = log.read(offset, max(max_bytes, SKIPPED_AT_ONCE))
    return memoryview(b"")
