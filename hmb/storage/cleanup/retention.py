"""Retention: which of a log's oldest segments may be deleted.

The broker deletes whole segments, the oldest segment first. It does not matter whether a consumer has read the records.
The broker may delete a segment in each of these cases:
- The newest timestamp in the segment is older than `retention.ms`. If the messages have no timestamps, the broker uses
  the time of the last write to the file.
- Without the segment, the log still has at least `retention.bytes` bytes.
- All offsets of the segment are below the log start offset, because a DeleteRecords request has moved the log start
  offset.

The limits `retention.ms` and `retention.bytes` apply only if `cleanup.policy` contains `delete`. The value -1 means no
limit.

The last records of a topic must also expire, even if no producer writes to the topic any more. These records are in the
active segment, which the broker cannot delete. So when the active segment and all other segments have expired, the log
rolls: it creates a new, empty active segment. The broker can then delete the old active segment.

Source: Kafka 0.7 design, "Log" (deletes); Kafka's `UnifiedLog.deleteOldSegments`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.records import NO_TIMESTAMP
from hmb.storage.config import LogConfig
from hmb.storage.segment import Segment


def count_expired(segments: Sequence[Segment], config: LogConfig, *, now: int, log_start_offset: int) -> int:
    """Return how many of the oldest segments the broker can delete at the time `now` (ms)."""
    counts = [_below_start(segments, log_start_offset)]
    if config.deletes:
        counts += [_too_old(segments, config.retention_ms, now), _too_many(segments, config.retention_bytes)]
    return max(counts)


def _below_start(segments: Sequence[Segment], log_start_offset: int) -> int:
    return sum(1 for following in segments[1:] if following.base_offset <= log_start_offset)


def _too_old(segments: Sequence[Segment], retention_ms: int, now: int) -> int:
    if retention_ms < 0:
        return 0
    for number, segment in enumerate(segments):
        if segment.size and now - _newest(segment) <= retention_ms:
            return number
    return len(segments) - _is_empty(segments[-1])


def _too_many(segments: Sequence[Segment], retention_bytes: int) -> int:
    surplus = sum(segment.size for segment in segments) - retention_bytes
    if retention_bytes < 0:
        return 0
    for number, segment in enumerate(segments):
        surplus -= segment.size
        if surplus < 0:
            return number
    return len(segments) - _is_empty(segments[-1])


def _is_empty(active: Segment) -> bool:
    """Return whether the active segment is empty. Retention never deletes an empty active segment."""
    return not active.size


def _newest(segment: Segment) -> int:
    if segment.max_timestamp != NO_TIMESTAMP:
        return segment.max_timestamp
    return int(segment.path.stat().st_mtime * 1000)
