"""Responses for old clients. The broker converts the record batches of a log to the older message formats.

The module records/legacy/down_conversion.py converts one batch. The result contains no message if the batch contains
only transaction markers, or if compaction has removed all records of the batch.

An old client continues at the offset after the last message that it has received. After a response without a message,
the client would fetch the same offset again and again. To prevent this, the broker continues to read the log until it
finds a message, or until the log ends.

If the log contains no further message, HMB sends an empty response. Kafka up to version 3 sends a few bytes that look
like the beginning of a very large message. Kafka's consumer then assumes that this message is larger than its fetch
size, and stops with an error, although the message does not exist.

The broker converts the batches of a response one by one while it sends the response. So a response needs memory
for only one batch at a time. If the client does not read, this batch stays in memory until the broker closes
the connection (network/sending.py).

All responses to old clients share 64 MiB of memory (MAX_CONVERSION_MEMORY). Before the broker converts the
batches of a partition, it reserves memory for the largest of these batches. If too little memory is free, the
broker waits.

*Damaged batches.* If the first batch of a response is damaged, an old client gets the error CORRUPT_MESSAGE. If a
later batch is damaged, the client gets the messages of all batches before it, without an error. Its next fetch then
begins at the damaged batch. When clients fetch the offset of a damaged batch again, the log repairs the segment
(storage/recovery/read_checks.py).

A client that sends Fetch version 4 or later gets the batches without conversion, and checks the CRC itself.

For an old client, a broker converts record batches to an older message format, with a new CRC. Kafka up to version 3
does not check the old CRC before it converts a batch. It therefore sends damaged records with a correct CRC, and the
client cannot detect the damage. HMB checks the CRC of each batch before it converts the batch.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from hmb.protocol.errors import KafkaError, corrupt_message
from hmb.records.legacy.down_conversion import DamagedBatch, DownConversion
from hmb.storage.batches.decoding import CONVERTING
from hmb.storage.log import Log
from hmb.storage.log_reading import FetchDataInfo

SKIPPED_AT_ONCE = 1 << 20  # bytes that the broker reads at once while it looks for a message
MAX_CONVERSION_MEMORY = 64 << 20  # bytes of memory for all conversions together


class ByteBudget:
    """A budget of bytes for all threads that convert batches. A thread reserves bytes before it uses memory."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._changed = threading.Condition()  # guards `_free`; a thread that holds this lock takes no other lock

    @contextmanager
    def reserved(self, size: int, timeout: float) -> Iterator[None]:
        """Reserve `size` bytes during a `with` block. If `size` is greater than the budget, reserve the whole budget.

        First wait until enough bytes are free. Raises TimeoutError after `timeout` seconds.
        """
        size = min(size, self._size)
        with self._changed:
            if not self._changed.wait_for(lambda: self._free >= size, timeout):
                raise TimeoutError(f"no memory for {size} bytes of converted records")
            self._free -= size
        try:
            yield
        finally:
            with self._changed:
                self._free += size
                self._changed.notify_all()


CONVERTED = ByteBudget(MAX_CONVERSION_MEMORY)
# A thread waits at most this number of seconds for free memory. If a client reads nothing, the broker closes its
# connection after about 30 s (network/sending.py), so the memory for its response becomes free earlier.
PATIENCE = 60.0


class ConvertedRecords:
    """The records of one partition in a response for an old client.

    The broker converts these records while it sends the response.
    """

    def __init__(self, conversion: DownConversion) -> None:
        self._conversion = conversion

    @property
    def size(self) -> int:
        """The total number of bytes that `pieces` yields."""
        return self._conversion.size

    def pieces(self) -> Generator[bytes | memoryview, None, None]:
        """Convert the batches one by one, and yield the bytes of their messages.

        Raises OSError if the records in the file have changed since `size` was computed.
        """
        with CONVERTED.reserved(self._conversion.memory, PATIENCE):
            pieces = self._conversion.pieces()
            while True:
                try:
                    with CONVERTING:
                        piece = next(pieces, None)
                except KafkaError as error:
                    raise OSError(f"the records have changed during the conversion: {error}") from error
                if piece is None:
                    return
                yield piece


def converted(
    found: FetchDataInfo, log: Log, magic: int, offset: int, max_bytes: int, limit: int
) -> ConvertedRecords | memoryview:
    """Return the messages that an old client gets when it fetches `offset`.

    The number `magic` (0 or 1) is the newest message format that the client can decode. `found` is the result of a
    read at `offset` in `log`.

    If `found` contains no message for the client, for example only transaction markers, the function reads further
    in `log`. If it finds no message before the end of `log`, the result is empty.

    All messages together have at most `max_bytes` bytes. Only the first message can be larger.

    The function stops at the first batch or record that it cannot convert. If it has found no message before that,
    it raises KafkaError:

    - CORRUPT_MESSAGE if the batch is damaged
    - MESSAGE_TOO_LARGE if the batch has more than `limit` bytes after decompression
    - INVALID_RECORD if a record in the batch is malformed
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
            raise corrupt_message(f"{found.segment.path} ends inside the batch at {start}")
        offset = conversion.next_offset
        found = log.read(offset, max(max_bytes, SKIPPED_AT_ONCE))
    return memoryview(b"")
