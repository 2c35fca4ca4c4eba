"""Down-conversion: record batches become messages for old clients.

A client that sends a Fetch version below 4 cannot read record batches. A client that sends a version below 2 cannot
read timestamps either. The broker then encodes records of a newer format again, as plain uncompressed messages.
Conversion loses headers and producer ids, and for magic 0 also timestamps. Offsets stay the same. Messages that are old
enough are sent unchanged, with their stored CRC.

Control batches are omitted, because old clients would take them for records. Aborted records stay, because old clients
read uncommitted records.

A conversion computes a new CRC for each record, which would hide damage. So each batch is checked before it is
converted. The messages end before a damaged batch. The client's next fetch starts there and gets CORRUPT_MESSAGE.

A conversion also decompresses, so a few kilobytes can become gigabytes. Three rules limit the memory of a conversion:

- A conversion reads the batches twice. The first pass only adds up sizes, because a response contains the size of the
  records before the records. The second pass runs while the response is sent, and holds the messages of one batch at a
  time.
- The messages end at the client's limit, even in the middle of a batch.
- At most BATCH_SIZE bytes of messages are made from one batch. The client's next fetch continues after these messages.

For example, a client of Kafka 0.9 fetches at most 1 MB of a log with batches of 200 KB, which decompress to 600 KB
each. The first pass counts the messages of one batch and a part of the second one, 1 MB together. The response contains
exactly these messages.

Kafka 4 has removed down-conversion, and no longer supports the clients that need it (KIP-896). Source: Kafka's
`LazyDownConversionRecords`, `RecordsUtil`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.batch import LOG_APPEND_TIME_BIT, RecordBatch
from hmb.records.compression import DEFAULT_LIMIT
from hmb.records.fast.raw_records import raw_records
from hmb.records.legacy.message import MESSAGE_OVERHEAD, message_parts
from hmb.records.reading import MAGIC_POSITION, Batch, batch_size, parse_batch
from hmb.records.record import NO_TIMESTAMP
from hmb.records.varint import read_varint

BATCH_SIZE = 1 << 20  # bytes of messages from one batch; only a larger first message exceeds this limit
PIECE_SIZE = 1 << 16  # bytes of one read and of one write


Read = Callable[[int, int], bytes]  # (size, position) -> bytes; fewer than `size` at the end of the file
# The parts of a record: offset, timestamp (ms), attributes of its message, key, value, size of its headers (bytes).
_Plain = tuple[int, int, int, memoryview | None, memoryview | None, int]


class DamagedBatch(KafkaError):
    """An error that reports a damaged batch, which starts at `position`."""

    def __init__(self, position: int, batch: Batch, why: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, why)
        self.position = position
        self.batch = batch


class _Run(NamedTuple):
    """A sequence of messages that are sent unchanged, or one batch that has to be converted."""

    position: int
    view: memoryview
    is_old: bool  # whether the messages are sent unchanged


class DownConversion:
    """The messages that replace the batches of one log region in a response to an old client."""

    def __init__(
        self, read: Read, region: range, magic: int, start_offset: int, max_bytes: int, limit: int = DEFAULT_LIMIT
    ) -> None:
        """Measure the messages of the batches in a region, for a client that reads formats up to `magic` (0 or 1).

        `region` is a range of positions for `read`. A batch that is not completely in the region is omitted. The
        messages take at most `max_bytes`, but at least one message is included. A batch decompresses to `limit` bytes
        at most. Records below `start_offset` are omitted from a batch that has to be converted.

        Raises DamagedBatch, or KafkaError if the first batch is too large or cannot be read.
        """
        self.size = 0  # bytes; 0 if the region has only control batches
        self.memory = 0  # bytes that `pieces` holds at most
        self.next_offset = start_offset  # the offset after the region; only valid if `size` is 0
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
                        opened = self._limit  # The whole decompressed batch stays in memory during the first message.
                    self.memory = max(self.memory, PIECE_SIZE + len(run.view) + opened)
            if room < 0:
                return
            if not self.size:
                self.next_offset = parse_batch(run.view).last_offset + 1

    def _measure_run(self, run: _Run, room: int) -> int:
        """Count the messages of a run that fit into `room` bytes.

        Return the remaining bytes, or -1 if one does not fit.
        """
        most = self.size + BATCH_SIZE
        for size, cost in self._sizes(run):
            if self.size and (room < cost or (self.size + size > most and not run.is_old)):
                return -1
            self.size, room = self.size + size, room - cost
        return max(0, room)

    def _sizes(self, run: _Run) -> Iterator[tuple[int, int]]:
        """Yield the size of each message and its memory cost (bytes). The cost includes the decompressed headers."""
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
        """Yield the messages, `size` bytes in total. A piece may end in the middle of a message. Raises KafkaError."""
        left, small, waiting = self.size, list[bytes | memoryview](), 0
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
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{left} bytes of messages have disappeared from the log")

    def _messages(self, run: _Run, size: int) -> list[bytes | memoryview]:
        """Return the first messages of a run, at most `size` bytes. A very large record becomes several views."""
        if run.is_old:
            return [run.view[:size]]
        parts, done = list[bytes | memoryview](), 0
        for offset, timestamp, attributes, key, value, _ in self._opened(run):
            parts += message_parts(offset, self._magic, attributes, timestamp, key, value)
            done += MESSAGE_OVERHEAD[self._magic] + len(key or b"") + len(value or b"")
            if done == size:
                break  # The first pass may have stopped at the next record because that record cannot be read.
        return parts if done > BATCH_SIZE else [b"".join(parts)]

    def _runs(self) -> Iterator[_Run]:
        """Yield the runs of the region. Stop before an incomplete batch."""
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
        """Yield the records of a batch that has to be converted, without copies of keys and values."""
        batch = parse_batch(run.view)
        try:
            batch.check()
        except KafkaError as error:
            raise DamagedBatch(run.position, batch, error.message) from error
        if isinstance(batch, RecordBatch):
            if not batch.is_control:
                yield from _from_batch(batch, self._magic, self._start_offset, self._limit)
            return
        for offset, message in batch.entries(self._limit):  # Messages v1 become messages v0, which have no timestamps.
            if offset >= self._start_offset:
                key, value = message.key_and_value()
                yield offset, NO_TIMESTAMP, 0, key, value, 0


def _runs_in(view: memoryview, position: int, magic: int) -> Iterator[_Run]:
    """Yield the runs in a part of a file that starts at `position`. Stop before an incomplete batch."""
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
    if batch.has_all_records:  # The number of each record is its offset delta.
        first = min(max(0, start_offset - base_offset), batch.records_count)
    for at, end, offset, time_delta, key_start, key_size, value_at, _ in raw_records(batch, data, first):
        if offset < start_offset:
            continue
        value_size, value_start = read_varint(data, value_at)
        value_end = value_start + value_size if value_size > 0 else value_start
        if value_end >= end:  # The record ends before its number of headers.
            raise KafkaError(ErrorCode.INVALID_RECORD, f"the value of the record at {at} does not fit into the record")
        timestamp = max_timestamp if is_append_time else base_timestamp + time_delta
        key = view[key_start:value_at] if key_size >= 0 else None
        value = view[value_start:value_end] if value_size >= 0 else None
        yield offset, timestamp, attributes, key, value, end - value_end - 1
