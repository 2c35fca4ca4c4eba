"""Answers for old clients: the broker converts record batches of a log to the older message formats.

The module records/legacy/down_conversion.py converts one batch. An old client continues at the offset after the last
message that it has received. A part of a log may contain only markers of transactions, or batches whose records
compaction has removed. After an empty answer the client would fetch the same offset again and again. So the broker
continues in the log until it finds a message, or until the log ends. (Kafka up to 3 answers with the beginning of a
message that does not exist. Its own consumer stops, because it concludes that a message is larger than its fetch size.)

An answer is converted one batch at a time, while it is sent. If a client does not read, its batch stays in memory until
the broker closes the connection (sending.py). MOST_CONVERTED limits the memory of all these answers together. An answer
waits before its first message until it fits into this limit.

*Damage.* The client gets CORRUPT_MESSAGE if the first batch from its offset on is damaged. If a later batch is damaged,
the client gets the records before this batch without an error. A client of version 4 or later gets the damaged bytes,
and finds the wrong CRC itself. When a client fetches the same offset again, the log repairs the segment
(storage/recovery/read_checks.py). Kafka up to 3 does not check the CRC, and sends the changed record with a new CRC.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.legacy.down_conversion import DamagedBatch, DownConversion
from hmb.storage.batches.opening import CONVERTING
from hmb.storage.log import Log
from hmb.storage.log_reading import LogSlice

SKIPPED_AT_ONCE = 1 << 20  # bytes of the log that one search for a message reads
MOST_CONVERTED = 64 << 20  # bytes of all answers that are being converted


class Room:
    """A budget of bytes that several threads share."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._changed = threading.Condition()  # guards _free; no other lock is taken while it is held

    @contextmanager
    def reserved(self, size: int, timeout: float) -> Iterator[None]:
        """Hold `size` bytes, or all bytes if `size` is larger.

        Raises TimeoutError after `timeout` seconds of waiting.
        """
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
PATIENCE = 60.0  # seconds that an answer waits for memory; the broker disconnects a silent reader earlier


class ConvertedRecords:
    """The records of an answer, which are converted while they are sent."""

    def __init__(self, conversion: DownConversion) -> None:
        self._conversion = conversion

    @property
    def size(self) -> int:
        """The number of bytes that `pieces` yields."""
        return self._conversion.size

    def pieces(self) -> Generator[bytes | memoryview, None, None]:
        """Yield the messages. Raises OSError if the records have changed since they were measured."""
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
    """Return messages of `magic` (0 or 1) from `offset` on: the records of `found`, or later records of the log.

    The messages take at most `max_bytes`, but at least one message is included. A batch decompresses to `limit` bytes
    at most. The result is empty if the log ends without a message. Raises KafkaError: CORRUPT_MESSAGE if the first
    batch is damaged, MESSAGE_TOO_LARGE, INVALID_RECORD.
    """
    while found.records is not None and found.segment is not None:
        read, start = found.records.file.read, found.records.position
        region = range(start, start + found.records.size)
        try:
            with CONVERTING:
                conversion = DownConversion(read, region, magic, offset, max_bytes, limit)
        except DamagedBatch as error:
            found.segment.damage_reports.report(error.position, error.batch, error)
            raise
        if conversion.size:
            return ConvertedRecords(conversion)
        if conversion.next_offset <= offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{found.segment.path} ends inside the batch at {start}")
        offset = conversion.next_offset
        found = log.read(offset, max(max_bytes, SKIPPED_AT_ONCE))
    return memoryview(b"")
