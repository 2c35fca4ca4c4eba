"""Retention: which of a log's oldest segments may be deleted.

The broker deletes whole segments, beginning with the oldest one, even if no consumer has read the records. A segment
can be deleted if at least one of these conditions is true:
- The newest record of the segment is older than `retention.ms`. If the records have no timestamps, the broker uses the
  time of the last write to the file.
- Without the segment, the log would still have at least `retention.bytes` bytes.
- All records of the segment are below the log start offset. A DeleteRecords request can move the log start offset.

The limits `retention.ms` and `retention.bytes` apply only if `cleanup.policy` contains `delete`. The value -1 means no
limit.

The last records of a topic must also expire, even if producers no longer write to the topic. But these records are in
the active segment, and the broker never deletes the active segment. When all segments have expired, the log therefore
creates a new, empty active segment. The broker can then delete the segment that was active before.

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
