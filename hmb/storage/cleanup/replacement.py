"""Replacement: in a log, a new segment takes the place of one segment or of several neighboring segments.

Compaction (compaction/cleaner.py) and repairs (recovery/repair.py) write a new segment. `replace` puts the new segment
into the log, and removes the old segments. A crash at any step neither loses nor duplicates a record
(compaction/swap.py).

For example, a read finds a damaged batch in segment 100. `repair` makes a copy of this segment. The copy contains an
empty batch instead of the damaged batch. Then the copy replaces segment 100, and the thread that has found the damage
reads again.

The module log.py imports this module, because `Log.read` calls `repair` when it finds a damaged segment. This
module must not import log.py at run time, because that import would be circular. It imports log.py only for
type checks.

Source: Kafka's `UnifiedLog.replaceSegments`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.cleanup.deletion import roll
from hmb.storage.compaction import swap
from hmb.storage.recovery.repair import repaired_copy
from hmb.storage.segment import DamagedSegment, Segment

if TYPE_CHECKING:  # A real import would be circular.
    from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
REPAIR_PATIENCE = 10.0  # seconds; a repair waits this long for a running compaction to end


def replace(log: Log, old: Sequence[Segment], new: Segment) -> None:
    """Replace the neighboring segments `old` of the log with the segment `new`.

    The caller holds `log.cleanup_lock`. Before the call, the names of the new segment's files end in `.cleaned`.
    This function renames the files.

    Raises OSError if the replacement fails. The log then still uses the old segments. Raises UnfinishedSwap if the
    log already uses the new segment, but some files could not be renamed. The broker then renames these files at its
    next start.
    """
    next_offset = log.log_segments.next_offset(old[-1], log.log_end_offset)
    log.log_segments.begin_replacement(old, next_offset)
    swap.make_ready(new)
    try:
        with log.lock:  # Threads that append or read records also use the log's list of segments.
            log.log_segments.replace(old, new)
        log.log_segments.remove_files(old, log.clock() + log.config.file_delete_delay_ms)
        swap.put_in_place(new)
    except OSError as error:
        raise swap.UnfinishedSwap(str(error)) from error
    log.log_segments.add_entry(new, next_offset)


def check(log: Log, offset: int, why: str) -> None:
    """Check the segment that contains `offset`, and repair it if it is damaged.

    The broker logs `why`, the reason for the check. Raises KAFKA_STORAGE_ERROR if the repair fails.
    """
    repair(log, DamagedSegment(log.log_segments.from_offset(offset)[0], why))


def repair(log: Log, damage: DamagedSegment) -> None:
    """Repair the segment in which a read found damage. Raises KAFKA_STORAGE_ERROR if the repair fails."""
    LOGGER.error("%s: the broker now checks the segment, and repairs it if it is damaged", damage.message)
    segment = damage.segment
    if not log.cleanup_lock.acquire(timeout=REPAIR_PATIENCE):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.directory}: a compaction is in progress")
    try:
        if segment is log.log_segments.active and segment.size:
            # `roll` raises KafkaError after a failed sync. The log then accepts no appends, so the segment cannot
            # change during the repair.
            with contextlib.suppress(KafkaError):
                roll(log)
        is_complete = segment is not log.log_segments.active or log.group_commit.has_failed
        if segment in log.segments and is_complete:
            next_offset = log.log_segments.next_offset(segment, log.log_end_offset)
            new = repaired_copy(segment, next_offset, log.segments)
            if new is not None:
                replace(log, [segment], new)
    except OSError as error:
        why = f"{segment.path} cannot be repaired: {error}"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why) from error
    finally:
        log.cleanup_lock.release()
