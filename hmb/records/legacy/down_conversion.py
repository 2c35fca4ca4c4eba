"""Down-conversion: converts record batches to messages, for old clients.

A client that sends Fetch requests in versions 0 to 3 cannot decode record batches. A client that sends versions 0 or 1
can decode only messages v0, which have no timestamps. For these old clients, the broker converts records to
uncompressed messages. The messages do not contain the headers and the producer ids of the records. The offsets stay the
same. If the log already contains messages that the client can decode, the broker sends them unchanged.

The broker omits control batches, because an old client would treat a control record like a record of an application.
The broker does not omit the records of aborted transactions: old clients do not know transactions, so they get all
records.

Down-conversion computes a new CRC for each record. If a batch were damaged, the new CRCs would hide the damage. So the
broker checks each batch before the conversion, and sends only the messages before a damaged batch. The client's next
Fetch request begins at the damaged batch, and the response contains CORRUPT_MESSAGE.

Down-conversion decompresses batches, so a few kilobytes can become gigabytes. Three rules limit the memory:

- The broker reads the batches twice. The first pass only computes the total size of the messages, because a
  response contains this size before the messages. The second pass runs while the broker sends the response,
  and keeps only the messages of one batch in memory.

- The Fetch request limits the total size of the messages in the response. If even the first message exceeds the
  limit, the broker sends only this message.

- From one batch, a response contains at most BATCH_SIZE bytes (1 MiB) of converted messages. If the batch
  contains more messages, the response ends, and the client's next Fetch request asks for the remaining
  messages. There is one exception: the first message of a response can be larger than BATCH_SIZE.

The limit in a Fetch request applies to the converted messages, not to the batches in the log. For example, a client of
Kafka 0.9 requests at most 1 MB. Each batch in the log has 200 KB, and decompresses to 600 KB. The response contains all
messages of the first batch (600 KB), and the first 400 KB of messages of the second batch.

Kafka 4 no longer contains down-conversion, and does not support the clients that need it (KIP-896). Source: Kafka's
`LazyDownConversionRecords`, `RecordsUtil`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError, corrupt_message, invalid_record
from hmb.records.batch import LOG_APPEND_TIME_BIT, MAGIC_POSITION, RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.fast.raw_records import raw_records
from hmb.records.legacy.message import MESSAGE_OVERHEAD, message_parts
from hmb.records.reading import Batch, batch_size, parse_batch
from hmb.records.record import NO_TIMESTAMP
from hmb.records.varint import read_varint

BATCH_SIZE = 1 << 20  # bytes; the limit for the messages of one batch. Only the first message can be larger.
PIECE_SIZE = 1 << 16  # bytes that are read or written at once


Read = Callable[[int, int], bytes]  # (size, position) -> bytes; fewer bytes at the file's end
# The broker decodes a record into this tuple, and then encodes it in an older message format. The fields are: offset,
# timestamp (ms), message attributes, key, value, and size of the headers (bytes).
_Plain = tuple[int, int, int, memoryview | None, memoryview | None, int]


class DamagedBatch(KafkaError):
    """The error for a damaged batch. `position` is the start of the batch in its file."""

    def __init__(self, position: int, batch: Batch, why: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, why)
        self.position = position
        self.batch = batch


class _Run(NamedTuple):
    """A part of a log: messages that the broker sends unchanged, or one batch that it must convert."""

    position: int
    view: memoryview
    is_old: bool  # True for messages in an old format that the client can decode: the broker sends them unchanged


class DownConversion:
    """The messages that an old client gets instead of the batches in one region of a log."""

    def __init__(
        self, read: Read, region: range, magic: int, start_offset: int, max_bytes: int, limit: int = DEFAULT_LIMIT
    ) -> None:
        """Find the messages that the client gets, and compute their total size.

        - `read` is a function that reads bytes of the log file.
        - `region` is the range of positions in the log file that the caller wants to send. A batch that ends after this
          range is left out.
        - `magic` (0 or 1) is the newest message format that the client can decode. Messages of this format or an older
          format are sent unchanged. All other messages and batches are converted.
        - `start_offset` is the first offset that the client wants. Records with smaller offsets are left out, except in
          messages that are sent unchanged.
        - `max_bytes` is the maximum size of all messages together. Only the first message can be larger.
        - `limit` is the maximum size of a batch after decompression, in bytes.

        The constructor stops at the first error. If it has found messages before the error, the client gets these
        messages. Otherwise, the constructor raises the error:

        - DamagedBatch: a batch is damaged.
        - Another KafkaError: a batch cannot be decoded, or is larger than `limit`.
        """
        self.size = 0  # bytes of all messages; 0 if the client gets no message
        self.memory = 0  # the largest number of bytes that `pieces` keeps in memory while the caller sends a piece
        # If `size` is 0, the caller reads further in the log, from `next_offset` on. If `size` is greater than 0,
        # `next_offset` has no meaning.
        self.next_offset = start_offset
        self._read, self._region = read, region
        self._magic, self._start_offset, self._limit = magic, start_offset, limit
        try:
            self._measure(max_bytes)
        except KafkaError:
            if not self.size:
                raise

    def _measure(self, room: int) -> None:
        for run in self._runs():
            before = self.size
            try:
                room = self._measure_run(run, room)
            finally:
                if opened := self.size - before:
                    if opened > BATCH_SIZE and not run.is_old:
                        # The response's first message is larger than BATCH_SIZE. `pieces` does not copy it, so the
                        # whole decompressed batch stays in memory: at most `_limit` bytes.
                        opened = self._limit
                    self.memory = max(self.memory, PIECE_SIZE + len(run.view) + opened)
            if room < 0:
                return
            if not self.size:
                self.next_offset = parse_batch(run.view).last_offset + 1

    def _measure_run(self, run: _Run, room: int) -> int:
        """Add the sizes of a run's messages (see `_Run`) to `self.size`, until a message does not fit.

        `room` is the number of free bytes in the response. Return the number of free bytes after the run's last
        message, or -1 if a message does not fit.

        The first message of a response always fits. Any other message must meet two conditions:

        - The message and its record's removed headers together fit into the free bytes (see `_sizes`).
        - The converted messages of one batch, including this message, have at most BATCH_SIZE bytes.
        """
        most = self.size + BATCH_SIZE
        for size, cost in self._sizes(run):
            if self.size and (room < cost or (self.size + size > most and not run.is_old)):
                return -1
            self.size, room = self.size + size, room - cost
        return max(0, room)

    def _sizes(self, run: _Run) -> Iterator[tuple[int, int]]:
        """Yield two numbers for each message: its size in the response and its cost, both in bytes.

        The cost is the size plus the bytes of the headers that the conversion removes. These headers count, because the
        broker must decompress them. For example, a record has 30 bytes of headers, and becomes a message of 100 bytes
        without headers. Its cost is 130.

        If the broker sends a message unchanged, the cost is equal to the size.
        """
        if run.is_old:
            position = 0
            while position < len(run.view):
                size = batch_size(run.view, position)
                yield size, size
                position += size
        else:
            for _, _, _, key, value, lost in self._opened(run):
                size = MESSAGE_OVERHEAD[self._magic] + len(key or b"") + len(value or b"")
                yield size, size + lost

    def pieces(self) -> Generator[bytes | memoryview, None, None]:
        """Yield the bytes of the messages in pieces, which have `size` bytes in total.

        A piece can end in the middle of a message. This method reads the batches from the log again. Raises KafkaError
        if a batch was damaged or deleted after the constructor had read it.
        """
        left, waiting = self.size, 0
        small: list[bytes | memoryview] = []
        for run in self._runs():
            for piece in self._messages(run, left):
                left -= len(piece)
                is_small = len(piece) < PIECE_SIZE
                if is_small:
                    small.append(piece)
                    waiting += len(piece)
                if small and (not is_small or waiting >= PIECE_SIZE or not left):
                    yield b"".join(small)
                    small, waiting = [], 0
                if not is_small:
                    yield piece
            if not left:
                return
        raise corrupt_message(f"{left} bytes of messages have disappeared from the log")

    def _messages(self, run: _Run, size: int) -> list[bytes | memoryview]:
        """Return the first messages of a run (see `_Run`): at most `size` bytes, as a list of parts.

        Usually, one part contains all these messages. If a converted message is larger than BATCH_SIZE, the
        function does not copy the message into one part. It returns the key and the value as separate parts.
        """
        if run.is_old:
            return [run.view[:size]]
        done = 0
        parts: list[bytes | memoryview] = []
        for offset, timestamp, attributes, key, value, _ in self._opened(run):
            parts += message_parts(offset, self._magic, attributes, timestamp, key, value)
            done += MESSAGE_OVERHEAD[self._magic] + len(key or b"") + len(value or b"")
            if done == size:
                break  # Do not read the next record. It may be damaged, because the first pass stopped before it.
        return parts if done > BATCH_SIZE else [b"".join(parts)]

    def _runs(self) -> Iterator[_Run]:
        """Yield the runs (see `_Run`) in the log region, without an incomplete batch at its end."""
        position, end = self._region.start, self._region.stop
        while position < end:
            view = memoryview(self._read(min(PIECE_SIZE, end - position), position))
            done = 0
            for run in _runs_in(view, position, self._magic):
                yield run
                done += len(run.view)
            if not done:
                size = batch_size(view) if len(view) > MAGIC_POSITION else 0
                if size <= len(view) or size > end - position:
                    return
                yield from _runs_in(memoryview(self._read(size, position)), position, self._magic)
                done = size
            position += done

    def _opened(self, run: _Run) -> Iterator[_Plain]:
        """Decode a batch that the broker must convert for the client, and yield its records.

        The function skips control batches, and records with an offset below `start_offset`. It does not copy keys or
        values. Raises DamagedBatch if the batch is damaged.
        """
        batch = parse_batch(run.view)
        try:
            batch.check()
        except KafkaError as error:
            raise DamagedBatch(run.position, batch, error.message) from error
        if isinstance(batch, RecordBatch):
            if not batch.is_control:
                yield from _from_batch(batch, self._magic, self._start_offset, self._limit)
            return
        for offset, message in batch.entries(self._limit):  # The caller converts messages from format v1 to v0.
            if offset >= self._start_offset:
                key, value = message.key_and_value()
                yield offset, NO_TIMESTAMP, 0, key, value, 0


def _runs_in(view: memoryview, position: int, magic: int) -> Iterator[_Run]:
    """Yield the messages and batches in `view` in groups, called runs.

    Consecutive messages that the client can decode form one run. Any other message or batch is a run of its own.
    An incomplete message or batch at the end is left out.

    The number `magic` is the newest format that the client can decode. `view` begins at `position` in the file.
    """
    start = end = 0
    while end + MAGIC_POSITION < len(view) and (size := batch_size(view, end)) <= len(view) - end:
        if view[end + MAGIC_POSITION] > magic:
            if start < end:
                yield _Run(position + start, view[start:end], True)
            yield _Run(position + end, view[end : end + size], False)
            start = end + size
        end += size
    if start < end:
        yield _Run(position + start, view[start:end], True)


def _from_batch(batch: RecordBatch, magic: int, start_offset: int, limit: int) -> Iterator[_Plain]:
    data = batch.uncompressed(limit)
    view = memoryview(data)
    is_append_time = batch.attributes & LOG_APPEND_TIME_BIT
    attributes = is_append_time if magic else 0
    base_offset, base_timestamp, max_timestamp = batch.base_offset, batch.base_timestamp, batch.max_timestamp
    first = 0
    if batch.has_all_records:  # Record number n has the offset delta n.
        first = min(max(0, start_offset - base_offset), batch.records_count)
    for at, end, offset, time_delta, key_start, key_size, value_at, _ in raw_records(batch, data, first):
        if offset < start_offset:
            continue
        value_size, value_start = read_varint(data, value_at)
        value_end = value_start + value_size if value_size > 0 else value_start
        if value_end >= end:  # No byte is left for the number of headers.
            raise invalid_record(f"the value of the uncompressed record at byte {at} does not fit into the record")
        timestamp = max_timestamp if is_append_time else base_timestamp + time_delta
        key = view[key_start:value_at] if key_size >= 0 else None
        value = view[value_start:value_end] if value_size >= 0 else None
        yield offset, timestamp, attributes, key, value, end - value_end - 1
