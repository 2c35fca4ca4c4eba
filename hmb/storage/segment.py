"""A segment: one piece of a partition's log, with its two indexes.

A log is cut into segments so that old records can be dropped by deleting a file, and so that an index stays small.  A
segment is three files that share a name, the offset of its first record in twenty digits::

    00000000000000008021.log         the batches, exactly as they came over the wire
    00000000000000008021.index       offset -> position, sparse    (offset_index.py)
    00000000000000008021.timeindex   timestamp -> offset, sparse   (time_index.py)

Only the last segment of a log, the active one, is appended to.  `size` is the number of bytes that hold whole batches;
bytes after it do not count.  It grows after a write has succeeded, so a reader never sees half a batch.

Source: thesis ch. 9.5.2 and 9.5.3; Kafka's `LogSegment`.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, Batch, parse_batch
from hmb.storage.config import LogConfig
from hmb.storage.files import FileRegion, open_file, pread_fully
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.time_index import TimeIndex, TimestampOffset

SCAN_WINDOW = 8192  # bytes: about two index intervals, so a look-up mostly costs one read
HEADER_PEEK = 61  # bytes that show any batch's header, whatever its magic
DELETED = ".deleted"
MAX_RELATIVE_OFFSET = 2**31 - 1


class Segment:
    """One segment.  Appends happen under the log's lock; reads take none."""

    def __init__(self, directory: Path, base_offset: int, config: LogConfig, *, suffix: str = "") -> None:
        """Open or make the segment; one that is not part of the log yet has a suffix to its names (swap.py)."""
        stem = directory / f"{base_offset:020d}"
        self.base_offset = base_offset
        self.path = stem.with_suffix(".log" + suffix)
        self.offset_index = OffsetIndex(stem.with_suffix(".index" + suffix), base_offset)
        self.time_index = TimeIndex(stem.with_suffix(".timeindex" + suffix), base_offset)
        self.size = self.path.stat().st_size if self.path.exists() else 0
        self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last
        self.first_timestamp: int | None = None  # of the first batch, in ms: segment.ms counts from it
        self._config = config
        self._file: FileIO | None = None
        self._bytes_since_index_entry = 0

    @property
    def file(self) -> FileIO:
        if self._file is None:
            self._file = open_file(self.path)
        return self._file

    def is_full(self, size: int, last_offset: int, timestamp: int) -> bool:
        """Whether `size` more bytes, up to `last_offset`, belong into a new segment."""
        if not self.size:
            return False
        too_old = self.first_timestamp is not None and timestamp - self.first_timestamp > self._config.segment_ms
        return (
            too_old
            or self.size + size > self._config.segment_bytes
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
            or self.offset_index.size + self.offset_index.ENTRY.size > self._config.segment_index_bytes
            or self.time_index.size + self.time_index.ENTRY.size > self._config.segment_index_bytes
        )

    def append(
        self, parts: Sequence[bytes | bytearray | memoryview], first_batch_end: int, newest: TimestampOffset
    ) -> None:
        """Write whole batches at the end.

        `first_batch_end` is the last offset of the first of them, which is what the offset index names; `newest` is the
        greatest timestamp among them with its offset.  Raises OSError, and then nothing has been appended.
        """
        size = sum(map(len, parts))
        self._write(parts, size)
        self._note(first_batch_end, self.size, size, newest)
        self.size += size

    def _write(self, parts: Sequence[bytes | bytearray | memoryview], size: int) -> None:
        descriptor = self.file.fileno()
        try:
            written = os.pwritev(descriptor, parts, self.size)
            if written < size:  # the disk is nearly full, or the write is larger than the kernel takes at once
                rest = memoryview(b"".join(parts))[written:]
                while rest:
                    written = os.pwrite(descriptor, rest, self.size + size - len(rest))
                    rest = rest[written:]
        except OSError:
            os.ftruncate(descriptor, self.size)
            raise

    def _note(self, first_batch_end: int, position: int, size: int, newest: TimestampOffset) -> None:
        """Keep the indexes: called for each append, and again for each batch when they are made anew."""
        if self.first_timestamp is None:
            self.first_timestamp = newest.timestamp
        if newest.timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max_timestamp = newest
        if self._bytes_since_index_entry > self._config.index_interval_bytes:
            self.offset_index.append(first_batch_end, position)
            self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size

    def read(self, offset: int, max_bytes: int, end: int) -> FileRegion | None:
        """The bytes from the batch that holds `offset`, or the next one after a gap; None where there is none before
        `end`.

        At most `max_bytes`, which may cut the last batch, but always the first batch whole: a reader whose limit is
        smaller than one batch would never get on.
        """
        for position, batch in self.batches(self.offset_index.lookup(offset).position, end):
            if batch.last_offset >= offset:
                return FileRegion(self.file, position, max(batch.size, min(max_bytes, end - position)))
        return None

    def batches(self, position: int, end: int) -> Iterator[tuple[int, Batch]]:
        """Each whole batch from `position` up to `end`, headers only, with its position."""
        window, window_start = b"", position
        while position < end:
            if position + HEADER_PEEK > window_start + len(window):
                window, window_start = pread_fully(self.file, min(SCAN_WINDOW, end - position), position), position
            batch = parse_batch(window, position - window_start)
            if position + batch.size > end:
                return
            yield position, batch
            position += batch.size

    def whole(self, position: int, header: Batch) -> Batch:
        """The batch at a position with its records, after `batches` has given its header."""
        return parse_batch(FileRegion(self.file, position, header.size).read())

    def first_at_or_after(self, timestamp: int, end: int) -> TimestampOffset | None:
        """The first record that is not older than `timestamp` (ms), with its own timestamp."""
        start = self.offset_index.lookup(self.time_index.lookup(timestamp)).position
        for position, batch in self.batches(start, end):
            if batch.max_timestamp >= timestamp:
                for record in self.whole(position, batch).records():
                    if record.timestamp >= timestamp:
                        return TimestampOffset(record.timestamp, record.offset)
        return None

    def end_offset(self) -> int:
        """The offset after the last whole batch; drops what is not whole.  For one whose indexes can be trusted."""
        end_offset, size = self.base_offset, self.offset_index.last.position
        for position, batch in self.batches(size, self.size):
            end_offset, size = batch.last_offset + 1, position + batch.size
            if self.first_timestamp is None:
                self.first_timestamp = batch.max_timestamp
            if batch.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.offset_of_max_timestamp = batch.max_timestamp, batch.last_offset
        self.size = size
        return end_offset

    def recover(self) -> KafkaError | None:
        """Check every batch and make the indexes anew; None where all is well, else what is wrong and where.

        `size` is then the length of the undamaged beginning; the file keeps all its bytes (`truncate` cuts it).
        """
        self._forget()
        total, self.size = os.fstat(self.file.fileno()).st_size, 0
        if not total:
            return None
        next_offset = self.base_offset
        view = memoryview(mmap.mmap(self.file.fileno(), total, access=mmap.ACCESS_READ))
        while self.size < total:
            try:
                batch = parse_batch(view, self.size)
                batch.check()
                if batch.last_offset < next_offset:
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"offset {batch.last_offset} after {next_offset - 1}")
            except KafkaError as error:
                return KafkaError(error.code, f"{self.path}, position {self.size}: {error.message}")
            self._note(
                batch.last_offset, self.size, batch.size, TimestampOffset(batch.max_timestamp, batch.last_offset)
            )
            next_offset = batch.last_offset + 1
            self.size += batch.size
        return None

    def rebuild_indexes(self) -> None:
        """Make the indexes anew from the batches' headers."""
        self._forget()
        for position, batch in self.batches(0, self.size):
            newest = TimestampOffset(batch.max_timestamp, batch.last_offset)
            self._note(batch.last_offset, position, batch.size, newest)

    def _forget(self) -> None:
        self.offset_index.clear()
        self.time_index.clear()
        self.max_timestamp, self.offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        self.first_timestamp = None
        self._bytes_since_index_entry = 0

    def truncate(self) -> int:
        """Cut the file after its last whole batch; returns the number of bytes cut."""
        cut = self.path.stat().st_size - self.size
        if cut:
            os.ftruncate(self.file.fileno(), self.size)
        return cut

    def flush(self) -> None:
        """Sync the log file.  The indexes are not synced: after a power cut they are made again from the log."""
        os.fdatasync(self.file.fileno())

    def seal(self) -> None:
        """No more appends: the last time index entry tells the greatest timestamp."""
        self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.close()
        self.time_index.close()

    def rename(self, old_suffix: str, new_suffix: str) -> None:
        """Rename the files, the log last; a reader that still holds the segment reads on."""
        for holder in (self.offset_index, self.time_index, self):
            if holder.path.exists():
                name = holder.path.name.removesuffix(old_suffix) + new_suffix
                holder.path = holder.path.rename(holder.path.with_name(name))

    def mark_deleted(self) -> None:
        """Rename the files so that no start finds the segment again."""
        self.rename("", DELETED)

    def delete(self) -> None:
        """Remove the files of a segment that was marked."""
        for holder in (self, self.offset_index, self.time_index):
            holder.path.unlink(missing_ok=True)

    def close(self) -> None:
        self.seal()
        self._file = None  # a reader may still hold it; the last one closes it
