"""A segment: one part of a partition's log, with its indexes.

A log is divided into segments for two reasons. First, to delete old records, the broker only has to remove the files of
a segment. Second, the index of a segment stays small. A segment is a few files that share one name: the offset of its
first record, written with twenty digits:
    00000000000000008021.log         the batches, with their offsets
    00000000000000008021.index       offset -> position, sparse    (offset_index.py)
    00000000000000008021.timeindex   timestamp -> offset, sparse   (time_index.py)
    00000000000000008021.txnindex    aborted transactions, if any  (transaction_index.py)

Example: each batch has 10 records and 1,000 bytes. A reader wants offset 8,100, which is in the batch at
position 7,000. The segment looks up offset 8,100 in its offset index, and finds the entry (offset 8,080,
position 5,000). It reads the headers of the batches at positions 5,000, 6,000 and 7,000. The third batch
contains offset 8,100, so the segment returns the region of the file that begins at position 7,000.

The broker appends only to the last segment of a log, the active segment. The `size` of a segment is the number of bytes
of its complete batches. An append increases `size` only after the write has succeeded. Readers read only up to `size`,
so they never read a batch that is still being written.

Source: Juchli and Wolf's thesis, chapters 9.5.2 and 9.5.3, "Storage Format"; Kafka's `LogSegment`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from hmb.protocol.errors import ErrorCode, KafkaError, corrupt_message
from hmb.records import NO_TIMESTAMP, Batch, parse_batch
from hmb.storage.batches.decoding import DamageReports
from hmb.storage.batches.headers import headers
from hmb.storage.config import LogConfig
from hmb.storage.files.durability import sync_directory
from hmb.storage.files.external_changes import ExternalChanges
from hmb.storage.files.together import release
from hmb.storage.files.virtual import DurableFile, FileRegion, Parts, VirtualFile
from hmb.storage.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex, OffsetPosition
from hmb.storage.recovery.index_rebuild import rebuild_indexes
from hmb.storage.time_index import TimeIndex, TimestampOffset
from hmb.storage.transaction_index import AbortedTransaction, TransactionIndex

LOGGER = logging.getLogger(__name__)


class DamagedSegment(KafkaError):
    """The error that a reader gets if a segment is damaged. The attribute `segment` is the damaged segment.

    Until the segment is repaired, readers cannot read the batches after the damage.
    """

    def __init__(self, segment: Segment, why: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{segment.path}: {why}")
        self.segment = segment


class Segment:
    """One segment of a log. A thread must hold the log's lock to append. A thread needs no lock to read.

    After recovery, these statements are always true:

    - The first `size` bytes of the log file are complete batches. Each batch has greater offsets than the batch
      before it.
    - All offsets are in the range from `base_offset` to `base_offset + MAX_RELATIVE_OFFSET`, both included.
    - `size` never decreases, and the first `size` bytes never change.
    - No record has a timestamp greater than `max_timestamp`.
    """

    def __init__(self, directory: Path, base_offset: int, config: LogConfig, *, suffix: str = "") -> None:
        """Open the segment, or prepare a new one. The names of its files end with `suffix`."""
        stem = directory / f"{base_offset:020d}"
        self.base_offset = base_offset
        path = stem.with_suffix(".log" + suffix)
        self.offset_index = OffsetIndex(stem.with_suffix(OffsetIndex.SUFFIX + suffix), base_offset)
        self.time_index = TimeIndex(stem.with_suffix(TimeIndex.SUFFIX + suffix), base_offset)
        self.transaction_index = TransactionIndex(stem.with_suffix(TransactionIndex.SUFFIX + suffix), base_offset)
        exists = path.exists()
        self.file = DurableFile(path, exists=exists)
        self.size = path.stat().st_size if exists else 0
        self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last
        self.first_timestamp: int | None = None  # greatest timestamp (ms) of the first batch, for `segment.ms`
        # None means unknown: the log file already contains batches when the broker opens it. Only a rebuild of the
        # segment's indexes counts these batches.
        self.batch_count: int | None = None if self.size else 0
        self.producer_batch_positions: list[int] | None = None  # positions from `ProducerBatches`; None: unknown
        self.damage_reports = DamageReports(self.file)
        self.config = config
        self._jitter_ms = config.draw_jitter_ms()
        self._is_preallocated = False
        self._bytes_since_index_entry = 0
        self.rebuilding = threading.Lock()  # held while a thread rebuilds the offset index and the time index
        self.changes = ExternalChanges(self.file)
        self._last_position = 0  # position (bytes) of the last appended batch

    @property
    def path(self) -> Path:
        return self.file.path

    def make(self, *, sync: bool) -> None:
        """Create the log file before the first append. Raises OSError.

        If `sync` is True, also sync the file and its directory, so that the file survives a power cut.
        """
        self.file.open()
        if sync:
            self.file.sync()
            sync_directory(self.path.parent)

    def is_full(self, size: int, last_offset: int, timestamp: int) -> bool:
        """Return whether the log must start a new segment before it appends new batches.

        The new batches have `size` bytes, the last offset `last_offset` and the greatest timestamp `timestamp` (ms).
        """
        if not self.size:
            return False
        max_age = self.config.max_segment_ms - self._jitter_ms
        return (
            (self.first_timestamp is not None and timestamp - self.first_timestamp > max_age)
            or self.size + size > self.config.segment_bytes
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
            or self.offset_index.size + self.offset_index.ENTRY.size > self.config.segment_index_bytes
            or self.time_index.size + self.time_index.ENTRY.size > self.config.segment_index_bytes
        )

    def append(
        self,
        parts: Parts,
        last_offset_of_first_batch: int,
        max_timestamp: TimestampOffset,
        aborted: AbortedTransaction | None = None,
    ) -> None:
        """Write complete batches to the end of the segment. If OSError is raised, nothing has been appended.

        - If the offset index gets a new entry, `last_offset_of_first_batch` is the offset in this entry.
        - `max_timestamp` is the greatest timestamp of the batches, with the offset of its record.
        - If the transaction index gets a new entry, `aborted` is this entry: the transaction that an ABORT marker ends.
        """
        try:
            if not self.size and self.config.preallocate:
                self._is_preallocated = True
                self.file.truncate(self.config.segment_bytes)
            size = self.file.write(parts, self.size)
            if aborted is not None:
                self.transaction_index.append(aborted)
        except OSError:
            self.file.truncate(self.size)
            raise
        self.index_batch(last_offset_of_first_batch, self.size, size, *max_timestamp)
        self._last_position = self.size
        self.size += size

    def index_batch(self, last_offset: int, position: int, size: int, max_timestamp: int, offset_of_max: int) -> None:
        """Update the indexes for one batch, after an append or during a rebuild of the indexes."""
        if self.first_timestamp is None:
            self.first_timestamp = max_timestamp
        if self.batch_count is not None:
            self.batch_count += 1
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max_timestamp = max_timestamp, offset_of_max
        if self._bytes_since_index_entry > self.config.index_interval_bytes:
            try:
                self.offset_index.append(last_offset, position)
                self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
            except OSError as error:  # A missing entry only makes scans a little longer.
                LOGGER.warning("no index entry for offset %d: %s", last_offset, error)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size

    def read(self, offset: int, max_bytes: int, end: int, next_offset: int) -> FileRegion | None:
        """Return a region of the log file: the batch that contains `offset`, and the batches after it.

        If no batch contains `offset`, the region begins with the first batch that has greater offsets. Return None if
        no such batch exists before the position `end`.

        The region ends at or before `end`. It has at most `max_bytes` bytes, so its last batch may be incomplete. But
        the first batch is always complete. Otherwise, a reader could never read a batch larger than `max_bytes`.

        All offsets in the region must be below `next_offset`. Raises DamagedSegment if the first batch breaks this
        rule, if a batch header is damaged, or if the log file is missing. Raises OSError if the file cannot be read.
        """
        found = self.find(offset, end)
        if found is None:
            return None
        position, batch = found
        if batch.last_offset >= next_offset:
            why = f"position {position}: a batch up to offset {batch.last_offset} where all are below {next_offset}"
            raise DamagedSegment(self, why)
        return FileRegion(self.file, position, max(batch.size, min(max_bytes, end - position)))

    def position_of(self, offset: int, end: int) -> int:
        """Return the position of the first batch that ends at or after `offset`, or `end` if no such batch exists."""
        found = self.find(offset, end)
        return end if found is None else found[0]

    def find(self, offset: int, end: int) -> tuple[int, Batch] | None:
        """Return `(position, batch)` for the first batch that ends at or after `offset`, or None if none exists.

        The search stops at `end`, a position in the log file. The result contains only the header of the batch. Raises
        DamagedSegment, OSError.
        """
        return next(self.batches_at_or_after(offset, end), None)

    def batches_at_or_after(self, offset: int, end: int) -> Iterator[tuple[int, Batch]]:
        """Yield `(position, batch)` for each batch that ends at or after `offset`. Raises DamagedSegment, OSError."""
        previous = -1
        try:
            for position, batch in self.batches_from(offset, end):
                last_offset = batch.last_offset
                if last_offset <= previous:
                    raise corrupt_message(f"position {position}: offsets go back")
                previous = last_offset
                if last_offset >= offset:
                    yield position, batch
        except (KafkaError, FileNotFoundError) as error:
            raise DamagedSegment(self, error.message if isinstance(error, KafkaError) else str(error)) from error

    def batches_from(self, offset: int, end: int) -> Iterator[tuple[int, Batch]]:
        """Return `(position, batch)` for the batches from `offset` on, and perhaps for a few earlier batches.

        The result begins at the last entry of the offset index that is not above `offset`. If this entry does not match
        the log, the method rebuilds the indexes, and the result begins at the start of the segment. The result ends
        before the position `end` in the log file. Raises KafkaError, OSError.
        """
        entry = self.offset_index.lookup(offset)
        batches = headers(self.file, entry.position, end)
        if not entry.position:
            return batches
        try:
            first = next(batches, None)
            self._check_entry(entry, first, end)
        except KafkaError as error:
            rebuild_indexes(self, self.offset_index, f"position {entry.position}: {error.message}")
            return headers(self.file, 0, end)
        return batches if first is None else chain([first], batches)

    def _check_entry(self, entry: OffsetPosition, first: tuple[int, Batch] | None, end: int) -> None:
        """Raise CORRUPT_MESSAGE if an entry of the offset index does not match the log.

        `first` contains the batch at the entry's position. HMB writes the last offset of this batch into the entry, but
        Kafka may write the last offset of a later batch. So the batch must end at or below the offset in the entry, and
        at or above the segment's `base_offset`.

        The caller reads the log file only up to the position `end`. If it has found no batch, `first` is None. The
        entry's position must then be equal to `end`.
        """
        if not (self.base_offset <= first[1].last_offset <= entry.offset if first else entry.position == end):
            raise corrupt_message(f"not the batch with offset {entry.offset}")

    def batches(self, position: int, end: int) -> Iterator[tuple[int, Batch]]:
        """Yield the position and the header of each batch between the file positions `position` and `end`.

        Raises CORRUPT_MESSAGE if the bytes are not whole batches, and OSError if the file cannot be read.
        """
        return headers(self.file, position, end)

    def whole(self, position: int, header: Batch) -> Batch:
        """Read the whole batch at `position`, with its records, and check it. `header` is the header of this batch.

        Raises CORRUPT_MESSAGE if the bytes of the batch are damaged.
        """
        return self.damage_reports.checked(position, parse_batch(FileRegion(self.file, position, header.size).read()))

    @contextmanager
    def indexes_recreated(self) -> Iterator[None]:
        """Remove all entries of the offset index and the time index, so that they can be rebuilt. Raises OSError.

        In the `with` block, the caller must call `index_batch` for each batch of the segment.
        """
        self.max_timestamp, self.offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        self.first_timestamp = None
        self.batch_count = 0
        self._bytes_since_index_entry = 0
        with self.offset_index.recreated(), self.time_index.recreated():
            yield

    def truncate(self) -> None:
        """Cut the log file after its last whole batch, which ends at `size`, and sync the file.

        Without the sync, a power cut could bring the old bytes back, and they would then follow newly appended batches.
        """
        self.file.truncate(self.size)
        self.file.sync()

    def check_file(self) -> None:
        """Raise SyncFailed if another process has removed, replaced or shortened the log file.

        If another process has only changed bytes of the file, log an error instead. The caller must ensure that no
        thread appends during the check.
        """
        self.changes.check(self.size, self._last_position)

    def flush(self) -> None:
        """Sync the log file and the transaction index.

        The offset index and the time index are not synced. If a power cut damages them, the broker rebuilds them from
        the log when it starts.
        """
        self.file.sync()
        self.transaction_index.file.sync_if_written()

    def finish(self) -> None:
        """Complete the files of a segment to which the broker will not append again. Raises OSError.

        The method adds the greatest timestamp of the segment to the time index, as the last entry.
        """
        if self._is_preallocated:
            self._is_preallocated = False
            self.file.truncate(self.size)
        self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)
        for index in (self.offset_index, self.time_index):
            index.make()
            index.file.close()

    @property
    def files(self) -> Sequence[VirtualFile]:
        """The files of the segment. The log file is the last one, so that it is also deleted last.

        A crash during the deletion therefore leaves no index without its log file (files/together.py).
        """
        return self.offset_index.file, self.time_index.file, self.transaction_index.file, self.file

    def close(self) -> None:
        """Call `finish`, and close all files of the segment. Raises OSError."""
        self.finish()
        release(self.files)
