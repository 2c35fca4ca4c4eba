"""The cleanup of one log: it deletes old segments, and it replaces segments that were compacted or repaired.

An append changes only the end of a log. This module contains all other changes of a log:

- `delete_records` moves the log start offset, for DeleteRecords;
- `expire` deletes the oldest segments, if retention (retention.py) or the log start offset allows it;
- `replace` replaces neighboring segments by one new segment, for compaction (compaction/cleaner.py) and for repairs;
- `repair` replaces a segment in which a read has found damage by a repaired copy (recovery/repair.py).

Only one cleanup of a log runs at a time, under the log's cleanup lock. Appends and reads continue during a cleanup.
When the cleanup deletes or replaces a segment, a reader may still read from this segment. So the cleanup renames the
segment's files at once, and removes them after `file.delete.delay.ms`.

Source: Kafka's `UnifiedLog.deleteOldSegments`, `UnifiedLog.replaceSegments`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.compaction import swap
from hmb.storage.config import LogConfig
from hmb.storage.log_segments import LogSegments
from hmb.storage.recovery.repair import repaired_copy
from hmb.storage.retention import count_expired
from hmb.storage.segment import DamagedSegment, Segment

LOGGER = logging.getLogger(__name__)
REPAIR_PATIENCE = 10.0  # seconds; a repair waits this long for a running compaction to end


class Locks(NamedTuple):
    """Two locks of one log. A thread that needs both takes `cleanup` first, then `log`."""

    cleanup: threading.Lock  # held while segments are deleted or replaced
    log: threading.Lock  # held during an append, and for a moment at the start of a read


class CleanedLog(Protocol):
    """The attributes and methods of a log (log.py) that its cleanup uses."""

    directory: Path
    config: LogConfig
    refusal: KafkaError | None

    @property
    def segments(self) -> Sequence[Segment]: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def recovery_point(self) -> int: ...

    @property
    def has_failed(self) -> bool: ...

    def move_start(self, offset: int) -> None: ...

    def flush(self) -> None: ...

    def roll(self, *, sync: bool = False) -> Segment: ...


class Cleanup:
    """Deletes and replaces segments of one log. Thread-safe. `Log.cleanup` creates a new object at each access."""

    def __init__(self, log: CleanedLog, segments: LogSegments, locks: Locks, clock: Callable[[], int]) -> None:
        """Use the list of segments and the locks of `log`. `clock` returns the time in ms."""
        self._log = log
        self._segments = segments
        self.lock, self._log_lock = locks.cleanup, locks.log
        self._clock = clock

    # -- deletion

    def new_start(self, before_offset: int) -> int:
        """Return the log start offset that a deletion of all records below `before_offset` would set.

        If `before_offset` is -1, all records would be deleted. The method itself changes nothing.

        Raises OFFSET_OUT_OF_RANGE, and POLICY_VIOLATION if only compaction may delete records of this log.
        """
        log, end_offset = self._log, self._log.log_end_offset
        if log.config.compacts and not log.config.deletes:
            why = f"{log.directory.name} is compacted: cleanup.policy={log.config.cleanup_policy}"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, why)
        wanted = end_offset if before_offset == -1 else before_offset
        if not 0 <= wanted <= end_offset:
            why = f"offset {before_offset} is not in 0 .. {end_offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
        return max(log.log_start_offset, wanted)

    def delete_records(self, before_offset: int) -> int:
        """Move the log start offset up to `before_offset`, and return it. Raises the same errors as `new_start`.

        From then on, no reader gets the records below the log start offset. Their segments stay on disk until `expire`
        deletes them.
        """
        log = self._log
        with self._log_lock:
            if log.refusal is not None:
                raise log.refusal
            log.move_start(self.new_start(before_offset))
            return log.log_start_offset

    def expire(self, *, before_offset: int = 0, at_once: bool = False) -> int:
        """Delete expired segments, and segments whose records are all below `before_offset`. Return their number.

        A segment has expired if retention (retention.py) allows its deletion. A fetch may still read the files of a
        deleted segment, so they are removed after `file.delete.delay.ms`. If `at_once` is set, they are removed
        immediately. Raises OSError, KAFKA_STORAGE_ERROR.
        """
        if not self.lock.acquire(blocking=False):
            return 0  # A compaction or a repair is in progress. A later call deletes the segments.
        try:
            return self._expire(before_offset, self._clock(), at_once) if self._log.refusal is None else 0
        finally:
            self.lock.release()

    def _expire(self, before_offset: int, now: int, at_once: bool) -> int:
        log = self._log
        start = max(before_offset, log.log_start_offset)
        if count_expired(log.segments, log.config, now=now, log_start_offset=start) == len(self._segments):
            self.roll()
        count = count_expired(log.segments, log.config, now=now, log_start_offset=start)
        with self._log_lock:
            expired = self._segments.take_first(min(count, len(self._segments) - 1))
            log.move_start(self._segments.first.base_offset)
        self._segments.forget(expired)
        for segment in expired:
            LOGGER.info("%s: deleting segment %d", log.directory.name, segment.base_offset)
        self._segments.remove_files(expired, now + log.config.file_delete_delay_ms)
        self._segments.delete_removed(None if at_once else now)
        return len(expired)

    def roll(self) -> None:
        """Roll the log before its active segment is full, so that the old segment can be deleted or repaired.

        The caller holds the cleanup lock. If the disk is full, the log does not roll, and the broker logs a warning.
        Raises KAFKA_STORAGE_ERROR if the log cannot be synced.
        """
        log = self._log
        log.flush()
        with self._log_lock:
            if log.recovery_point == log.log_end_offset:
                try:
                    log.roll(sync=True)
                except OSError as error:
                    LOGGER.warning("%s keeps its last segment until a new one can be created: %s", log.directory, error)

    # -- replacement

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace neighboring segments of the log by `new`, whose files have the suffix `.cleaned`.

        The caller holds the cleanup lock. Raises OSError if the segments could not be replaced. Raises UnfinishedSwap
        if the log already uses the new segment, but some of its files could not be renamed.
        """
        next_offset = self._segments.next_offset(old[-1], self._log.log_end_offset)
        self._segments.begin_replacement(old, next_offset)
        swap.make_ready(new)
        try:
            with self._log_lock:
                self._segments.replace(old, new)
            self._segments.remove_files(old, self._clock() + self._log.config.file_delete_delay_ms)
            swap.put_in_place(new)
        except OSError as error:
            raise swap.UnfinishedSwap(str(error)) from error
        self._segments.note(new, next_offset)

    def check(self, offset: int, why: str) -> None:
        """Check the segment that contains `offset`, and repair it if it is damaged.

        `why` is the reason for the check, for the broker's log. Raises KAFKA_STORAGE_ERROR if the repair fails.
        """
        self.repair(DamagedSegment(self._segments.from_offset(offset)[0], why))

    def repair(self, damage: DamagedSegment) -> None:
        """Repair the segment in which a read found damage. Raises KAFKA_STORAGE_ERROR if the repair fails."""
        LOGGER.error("%s: the segment is checked and repaired", damage.message)
        log, segment = self._log, damage.segment
        if not self.lock.acquire(timeout=REPAIR_PATIENCE):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.directory}: a compaction is in progress")
        try:
            if segment is self._segments.active and segment.size:
                with contextlib.suppress(KafkaError):  # If a sync has failed, the log cannot roll. Then it has ended.
                    self.roll()
            is_complete = segment is not self._segments.active or log.has_failed
            if segment in log.segments and is_complete:
                next_offset = self._segments.next_offset(segment, log.log_end_offset)
                new = repaired_copy(segment, next_offset, log.segments)
                if new is not None:
                    self.replace([segment], new)
        except OSError as error:
            why = f"{segment.path} cannot be repaired: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
        finally:
            self.lock.release()
