"""Deletion: `expire` deletes the oldest segments of a log, and `delete_records` moves the log start offset.

Example: a log has the segments 0, 100 and 200. A client deletes the records below offset 150. `delete_records` moves
the log start offset to 150, so no reader gets these records any more. The next `expire` deletes segment 0, because all
its offsets are below 150. Segment 100 stays.

Source: Kafka's `UnifiedLog.deleteOldSegments`, `UnifiedLog.maybeIncrementLogStartOffset`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.cleanup.retention import count_expired
from hmb.storage.events import EventKind

if TYPE_CHECKING:  # log.py imports this module indirectly, so an import at run time would be circular.
    from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)


def new_start(log: Log, before_offset: int) -> int:
    """Return the offset at which the log would start if the records below `before_offset` were deleted.

    The value -1 for `before_offset` means the log end offset. If the log already starts at a greater offset, the
    function returns this greater offset.

    Raises POLICY_VIOLATION if only compaction may delete records of this log. Raises OFFSET_OUT_OF_RANGE if
    `before_offset` is below -1 or above the log end offset.
    """
    end_offset = log.log_end_offset
    if log.config.compacts and not log.config.deletes:
        why = f"{log.directory.name} is compacted: cleanup.policy={log.config.cleanup_policy}"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, why)
    wanted = end_offset if before_offset == -1 else before_offset
    if not 0 <= wanted <= end_offset:
        why = f"offset {before_offset} is not in 0 .. {end_offset}"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
    return max(log.log_start_offset, wanted)


def delete_records(log: Log, before_offset: int) -> int:
    """Move the log start offset to `before_offset`. If the log start offset is already greater, do not change it.

    Return the new log start offset. Raises the same errors as the function `new_start`. No reader gets records below
    the log start offset. The segments of these records stay on disk until `expire` deletes them.
    """
    with log.lock:  # Without the lock, another thread could clean up or close the log meanwhile.
        if log.refusal is not None:
            raise log.refusal
        log.log_start_offset = new_start(log, before_offset)
        return log.log_start_offset


def expire(log: Log, *, before_offset: int = 0, at_once: bool = False) -> int:
    """Delete segments that have expired or are completely below `before_offset`. Return their number.

    The module retention.py decides which segments have expired. If a compaction or a repair is running, or if the
    log was closed or deleted, the function deletes nothing and returns 0.

    A fetch may still read a deleted segment, so its files stay on disk for `file.delete.delay.ms`. If `at_once` is
    True, the function removes the files of all deleted segments immediately.

    Raises OSError. Raises KAFKA_STORAGE_ERROR if the log cannot be synced.
    """
    if not log.cleanup_lock.acquire(blocking=False):
        return 0  # A compaction or a repair is in progress. A later call deletes the segments.
    try:
        return _expire(log, before_offset, log.clock(), at_once) if log.refusal is None else 0
    finally:
        log.cleanup_lock.release()


def _expire(log: Log, before_offset: int, now: int, at_once: bool) -> int:
    start = max(before_offset, log.log_start_offset)
    if count_expired(log.segments, log.config, now=now, log_start_offset=start) == len(log.log_segments):
        roll(log)
    count = count_expired(log.segments, log.config, now=now, log_start_offset=start)
    with log.lock:  # Threads that append or read records also use the log's list of segments.
        expired = log.log_segments.take_first(min(count, len(log.log_segments) - 1))
        log.log_start_offset = max(log.log_start_offset, log.log_segments.first.base_offset)
    log.log_segments.forget(expired)
    if expired:
        first, last = expired[0].base_offset, log.log_segments.first.base_offset - 1
        text = f"{log.directory.name}: deleted the records at offsets {first} to {last} (segments: {len(expired)})"
        log.events.add(EventKind.RETENTION, text, LOGGER)
    log.log_segments.remove_files(expired, now + log.config.file_delete_delay_ms)
    log.log_segments.delete_removed(None if at_once else now)
    return len(expired)


def roll(log: Log) -> None:
    """Start a new active segment, so that the broker can delete or repair the present active segment.

    The caller holds the cleanup lock. In two cases, the active segment stays the same:

    - Another thread appends records just after this function has synced the log.
    - The broker cannot create the new segment, for example because the disk is full. The broker logs a warning.

    Raises KAFKA_STORAGE_ERROR if the log cannot be synced.
    """
    log.flush()
    with log.lock:  # No append may come between the check and the new segment.
        if log.recovery_point == log.log_end_offset:
            try:
                log.roll(sync=True)
            except OSError as error:
                LOGGER.warning("%s keeps its last segment until a new one can be created: %s", log.directory, error)
