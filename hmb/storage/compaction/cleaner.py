"""The cleaner compacts logs. It drops a record if the log has a later record with the same key.

The beginning of a compacted log is *clean*: it has already been compacted. The end is *dirty*: its records are newer
than the last compaction:
    [ clean ][ clean ][ dirty ][ dirty ][ active ]
                      ^ first dirty offset, in cleaner-offset-checkpoint

A *round* is one compaction of one log. A round reads the log twice. The first pass reads only the dirty segments, which
contain the records that no round has compacted yet. It builds a map from each key to the offset of the key's last
record. The second pass copies the segments without the records that compaction drops (rule.py). A round also merges
neighboring segments if they fit into one new segment.

The cleaner never compacts the segment with the log's last record. It stops before the first segment with a
record younger than `min.compaction.lag.ms`, and at the first record of an open transaction.

The cleaner compacts a log in two cases. In the first case, much of the log is dirty (not compacted yet): the ratio of
dirty bytes to all bytes that can be compacted is at least `min.cleanable.dirty.ratio`. In the second case, all records
of a dirty segment are older than `max.compaction.lag.ms`.

For example, a log has 600 MB of clean segments and 400 MB of dirty segments. The share of the dirty part is 400 / 1000
= 0.4. This is less than `min.cleanable.dirty.ratio` (0.5), so the cleaner does not compact the log. When the dirty part
has grown to 600 MB, the share is 600 / 1200 = 0.5, and the cleaner compacts the log.

Compaction writes new batches with new CRCs. If a batch were damaged, the new CRC would hide the damage. So the cleaner
first checks the CRC of every batch. If a batch is damaged, the cleaner logs an error, keeps the segment, and compacts
the other logs. It tries the damaged log again after a pause.

Source: Kafka's `LogCleaner`, `LogCleanerManager`.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import Batch, RecordBatch, parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.cleanup import replacement
from hmb.storage.compaction import swap
from hmb.storage.compaction.rule import CleanedTransactionMetadata, Compaction, OffsetMap
from hmb.storage.compaction.throttle import Throttle
from hmb.storage.events import EventKind
from hmb.storage.failure_isolation import Stopped, isolated
from hmb.storage.files import together
from hmb.storage.files.windows import Windows
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager
from hmb.storage.offset_index import MAX_RELATIVE_OFFSET
from hmb.storage.segment import Segment
from hmb.storage.state import checkpoints
from hmb.storage.state.manifest import DamagedStateFile
from hmb.storage.state.offset_checkpoints import CLEANER_OFFSETS
from hmb.storage.time_index import TimestampOffset
from hmb.units import now_ms

LOGGER = logging.getLogger(__name__)
# If the compaction of a log fails, the cleaner tries again after FIRST_PAUSE seconds. Each further failure doubles the
# pause, up to LONGEST_PAUSE seconds.
FIRST_PAUSE, LONGEST_PAUSE = 15.0, 3600.0


class LogToClean(NamedTuple):
    """The segments of a log that can be compacted now.

    The records at the offsets from `first_dirty` up to `end` are dirty: they were not compacted yet.
    """

    segments: Sequence[Segment]
    first_dirty: int
    end: int

    @property
    def dirty(self) -> list[Segment]:
        bounds = [*(segment.base_offset for segment in self.segments), self.end]
        return [segment for segment, end in zip(self.segments, bounds[1:], strict=True) if end > self.first_dirty]

    @property
    def dirty_ratio(self) -> float:
        total = sum(segment.size for segment in self.segments)
        return sum(segment.size for segment in self.dirty) / total if total else 0.0


Select = Callable[[Log, int, int], LogToClean | None]  # arguments: a log, its first dirty offset, the time (ms)


def cleanable(log: Log, first_dirty: int, now: int) -> LogToClean | None:
    """Return the segments to compact at the time `now` (ms), or None if the log needs no compaction yet."""
    found, config = compactable(log, first_dirty, now), log.config
    if not found.dirty:
        return None
    too_old = any(0 <= s.max_timestamp < now - config.max_compaction_lag_ms for s in found.dirty)
    return found if too_old or found.dirty_ratio >= config.min_cleanable_dirty_ratio else None


def compactable(log: Log, first_dirty: int, now: int) -> LogToClean:
    """Return the segments that could be compacted at the time `now` (ms), even if the log needs no compaction."""
    config = log.config
    first_dirty = max(first_dirty, log.log_start_offset)
    segments, stable = log.segments, log.last_stable_offset
    # Compaction does not change the segment with the log's last batch. Without this batch, a reader could not reach the
    # log's end, and would wait for records that no longer exist.
    last = max((number for number, segment in enumerate(segments) if segment.size), default=0)
    count = min(last, sum(segment.base_offset < stable for segment in segments))
    if config.min_compaction_lag_ms:
        young = (n for n, s in enumerate(segments) if s.max_timestamp > now - config.min_compaction_lag_ms)
        count = min(count, next(young, count))
    return LogToClean(segments[:count], first_dirty, min(segments[count].base_offset, stable))


def clean(log: Log, work: LogToClean, *, max_memory: int, now: int, throttle: Throttle) -> int:
    """Compact a log. Return its new first dirty offset: no record from this offset on is compacted yet.

    Raises OSError or KafkaError on failure, and Stopped if the broker stops. In all these cases, no record is lost.
    """
    with log.cleanup_lock:
        throttle.spend(0)  # This call raises Stopped if the broker is stopping, because a closed log must not change.
        return _clean(log, work, max_memory, now, throttle)


def _clean(log: Log, work: LogToClean, max_memory: int, now: int, throttle: Throttle) -> int:
    segments = log.segments
    if not set(work.segments) <= set(segments):
        return work.first_dirty  # Some of these segments were deleted. The next compaction selects the segments again.
    limit = log.config.max_decompressed
    map = _map(work, segments, max_memory, limit, throttle)
    rule = Compaction(map, log.producers.last_batches(), now, log.config.delete_retention_ms, limit)
    rewriting = _Rewriting(log, segments, rule, throttle)
    for group in _groups([s for s in work.segments if s.base_offset < map.end_offset], log):
        rewriting.compact(group)
    return map.end_offset


def _map(work: LogToClean, segments: Sequence[Segment], max_memory: int, limit: int, throttle: Throttle) -> OffsetMap:
    """Return a map from each key of the dirty records (not compacted yet) to the offset of the key's last record.

    `segments` contains all segments of the log. If the map of all keys needs more than `max_memory` bytes, it contains
    only the keys of the oldest dirty records. The newer records stay dirty until a later compaction.
    """
    end = work.end
    while True:
        map = OffsetMap(max_memory, work.first_dirty, end, limit)
        backwards = (
            batch for segment in reversed(work.dirty) for batch in _dirty_batches(segment, segments, map, throttle)
        )
        if all(map.add(batch) for batch in backwards):
            return map
        end = work.first_dirty + end - map.next_offset


def _dirty_batches(
    segment: Segment, segments: Sequence[Segment], map: OffsetMap, throttle: Throttle
) -> Iterator[Batch]:
    """Yield the dirty batches (not compacted yet) of a segment, from the last batch to the first.

    The function skips the batches of aborted transactions. To detect these batches, it must read the segment from
    the beginning to the end. So it first stores the positions of the batches that it will yield. It yields only
    batches whose last offset is in the range of offsets in `map`.
    """
    transactions, positions, sizes = CleanedTransactionMetadata(), array("I"), array("I")
    _enter(segment, segments, transactions)
    for position, batch in _checked_batches(segment):
        if batch.is_control:
            transactions.end(batch)
        elif not transactions.is_aborted(batch) and map.begin_offset <= batch.last_offset < map.end_offset:
            positions.append(position)
            sizes.append(batch.size)
    windows = Windows(segment.file, segment.size)
    for position, size in zip(reversed(positions), reversed(sizes), strict=True):
        batch = parse_batch(*windows.at(position, size))
        yield batch
        throttle.spend(batch.size)


def _batches(
    segment: Segment, segments: Sequence[Segment], transactions: CleanedTransactionMetadata, throttle: Throttle
) -> Iterator[tuple[int, Batch]]:
    """Check the CRC of every batch of a segment, and yield `(position, batch)`. Raises KafkaError, OSError."""
    _enter(segment, segments, transactions)
    for position, batch in _checked_batches(segment):
        yield position, batch
        throttle.spend(batch.size)


def _checked_batches(segment: Segment) -> Iterator[tuple[int, Batch]]:
    """Check the CRC of each batch of a segment, and yield `(position, batch)`. Raises CORRUPT_MESSAGE, OSError."""
    windows, position = Windows(segment.file, segment.size), 0
    while position < windows.end:
        size = parse_batch(*windows.at(position, HEADER_PEEK)).size
        batch = segment.damage_reports.checked(position, parse_batch(*windows.at(position, size)))
        yield position, batch
        position += size


def _enter(segment: Segment, segments: Sequence[Segment], transactions: CleanedTransactionMetadata) -> None:
    """Load the aborted transactions of a segment into `transactions`, before the segment's batches are read."""
    number = segments.index(segment)
    # The next segment exists, because the active segment is never compacted.
    transactions.enter(segments[number:], segments[number + 1].base_offset)


def _groups(segments: Sequence[Segment], log: Log) -> list[list[Segment]]:
    """Divide neighboring segments into groups. The cleaner can merge each group into one segment."""
    config, groups = log.config, [[segments[0]]]
    for segment in segments[1:]:
        group = [*groups[-1], segment]
        size, index_size = sum(s.size for s in group), sum(s.offset_index.size for s in group)
        # The next segment exists, because the active segment is never compacted.
        following = log.segments[log.segments.index(segment) + 1]
        fits = size <= config.segment_bytes and index_size <= config.segment_index_bytes
        if fits and following.base_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET:
            groups[-1] = group
        else:
            groups.append([segment])
    return groups


class _Rewriting:
    """Copies the segments of a log, without the records that compaction drops."""

    def __init__(self, log: Log, segments: Sequence[Segment], rule: Compaction, throttle: Throttle) -> None:
        self._log = log
        self._segments = segments  # all segments of the log when the round began
        self._rule = rule
        self._throttle = throttle
        self._transactions = CleanedTransactionMetadata()

    def compact(self, group: Sequence[Segment]) -> None:
        """Replace the segments of `group` with one new segment, without the records that compaction drops."""
        log = self._log
        cleaned = swap.new_segment(log.directory, group[0].base_offset, log.config)
        try:
            for segment in group:
                self._write(cleaned, segment)
            last_write = group[-1].path.stat().st_mtime_ns  # Retention uses this time for messages without timestamps.
            file = cleaned.file.open()  # This creates the file even if no record stays.
            os.utime(file.fileno(), ns=(last_write, last_write))
            before = sum(segment.size for segment in group)
            if len(group) == 1 and cleaned.size == before:
                together.delete(cleaned.files)  # Compaction would remove no record, so the old segment stays.
                return
            replacement.replace(log, group, cleaned)
        except swap.UnfinishedSwap:
            raise
        except BaseException:
            together.delete(cleaned.files)
            raise
        text = f"{log.directory.name}: compacted {before} bytes from offset {cleaned.base_offset} on to {cleaned.size}"
        log.events.add(EventKind.COMPACTION, text, LOGGER)

    def _write(self, cleaned: Segment, segment: Segment) -> None:
        rule, transactions = self._rule, self._transactions
        is_old = segment.path.stat().st_mtime * 1000 < rule.now - rule.delete_retention_ms
        for position, batch in _batches(segment, self._segments, transactions, self._throttle):
            aborted = None
            try:
                if isinstance(batch, RecordBatch) and batch.is_control:
                    has_batches, aborted = transactions.end(batch)
                    kept = rule.apply_to_marker(batch, is_needed=has_batches)
                else:
                    kept = rule.apply(batch, is_aborted=transactions.is_aborted(batch), drop_old_tombstones=is_old)
            except KafkaError as error:
                segment.damage_reports.report(position, batch, error)
                kept, rule.is_blind = batch.view, True
            if kept is not None:
                left = parse_batch(kept)
                newest = TimestampOffset(left.max_timestamp, left.last_offset)
                cleaned.append([kept], left.last_offset, newest, aborted)
                self._throttle.spend(left.size)


class _Failure(NamedTuple):
    """A failed compaction of a log: the time of the next attempt, and the pause before this attempt.

    The time comes from `time.monotonic`, and the pause is in seconds. The pause doubles with each further failure.
    """

    next_try: float
    pause: float


class Cleaner:
    """Compacts the logs of a data directory. The log with the highest dirty ratio comes first.

    If 600 MB of a log are compacted and 400 MB wait for compaction, the dirty ratio is 400 / 1000 = 0.4.
    """

    def __init__(
        self,
        logs: LogManager,
        *,
        max_memory: int,
        rate: float,
        stop: threading.Event,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._max_memory = max_memory
        self._rate = rate
        self._stop = stop
        self._checkpoint = logs.directory / CLEANER_OFFSETS
        self._seen = dict(logs.items())
        self._first_dirty = {  # Omit offsets above the end of the log. They belong to a deleted log with the same name.
            name: offset
            for name, offset in self._read_checkpoint().items()
            if name in self._seen and offset <= self._seen[name].log_end_offset
        }
        self._failures: dict[Log, _Failure] = {}

    def reconfigure(self, *, max_memory: int, rate: float) -> None:
        """Change the limits of memory (bytes) and rate (bytes per second) for all later compactions."""
        self._max_memory, self._rate = max_memory, rate

    def _read_checkpoint(self) -> dict[TopicPartition, int]:
        if self._checkpoint.exists() and not self._checkpoint.stat().st_size:
            return {}  # The file can be empty, because Kafka creates an empty file first.
        try:
            self._logs.manifest.check(self._checkpoint)
            return checkpoints.read_offsets(self._checkpoint)
        except (DamagedStateFile, OSError) as error:
            LOGGER.error("%s; all logs are compacted again from their start", error)
            return {}

    def dirty_ratio(self, name: TopicPartition, log: Log) -> float | None:
        """Return the dirty (uncompacted) fraction of a log's compactable bytes, or None if compaction is off."""
        first_dirty = self._first_dirty.get(name, 0) if log.config.compacts and self._seen.get(name) is log else 0
        return compactable(log, first_dirty, self._clock()).dirty_ratio if log.config.compacts else None

    def run(self, select: Select = cleanable) -> None:
        """Call `select` for each log of a compacted topic, and compact the segments that `select` returns."""
        now = self._clock()
        work = []
        self._forget_deleted()
        for name, log in self._seen.items():
            with self._isolated(name, log):
                if log.config.compacts and self._is_due(log):
                    found = select(log, self._first_dirty.get(name, 0), now)
                    if found is not None:
                        work.append((found.dirty_ratio, name, log, found))
        for _, name, log, found in sorted(work, key=lambda entry: entry[0], reverse=True):
            with self._isolated(name, log):
                self._clean(name, log, found, now)

    def _is_due(self, log: Log) -> bool:
        failure = self._failures.get(log)
        return failure is None or time.monotonic() >= failure.next_try

    @contextmanager
    def _isolated(self, name: TopicPartition, log: Log) -> Iterator[None]:
        """Catch and report an error of the `with` block. The cleaner then skips `log` for a while."""
        with isolated(LOGGER, name, "not compacted; `hmb dump-log --verify` shows more"):
            try:
                yield
            except Stopped:
                LOGGER.info("%s: the compaction ends early, because the broker stops", name)
            except swap.UnfinishedSwap:
                # Some files of the log could not be renamed. The broker renames them at its next start. Until then, the
                # cleaner must not compact the log, so the pause is infinite.
                self._failures[log] = _Failure(math.inf, math.inf)
                raise
            except Exception:
                before = self._failures.get(log)
                pause = FIRST_PAUSE if before is None else min(2 * before.pause, LONGEST_PAUSE)
                self._failures[log] = _Failure(time.monotonic() + pause, pause)
                raise

    def _forget_deleted(self) -> None:
        """Remove deleted logs from the state of the cleaner.

        Otherwise, the files of a deleted log would stay open, because the cleaner still refers to the log. In addition,
        a new log with the same name would get the first dirty offset of the deleted log.
        """
        seen, self._seen = self._seen, dict(self._logs.items())
        self._failures = {log: failure for log, failure in self._failures.items() if log in self._seen.values()}
        gone = [name for name, log in seen.items() if self._seen.get(name) is not log]
        if [name for name in gone if self._first_dirty.pop(name, None) is not None]:
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        offsets = {
            name: self._first_dirty[name]
            for name, log in self._logs.items()
            if name in self._first_dirty and self._seen.get(name) is log
        }
        self._logs.write_checkpoint(self._checkpoint, offsets)

    def _clean(self, name: TopicPartition, log: Log, work: LogToClean, now: int) -> None:
        throttle = Throttle(self._rate, self._stop)
        self._first_dirty[name] = clean(log, work, max_memory=self._max_memory, now=now, throttle=throttle)
        self._failures.pop(log, None)
        self._write_checkpoint()
