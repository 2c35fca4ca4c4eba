"""The search by time: the first record of a log that is not older than a timestamp, for ListOffsets.

The time index of a segment limits the search to a few batches (time_index.py). The search reads the records of these
batches. It skips a batch that is damaged or cannot be read, because no reader gets the records of such a batch.

The search does not read a batch that exceeds the broker's limits for the size or the number of records. The first
offset of such a batch is the answer. A reader that starts there misses no record.

Source: KIP-33; KIP-734; Kafka's `LogSegment.findOffsetByTimestamp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, Batch, RecordBatch
from hmb.records.filtering import check_readable
from hmb.records.heads import heads
from hmb.storage.batches.opening import SEARCHING
from hmb.storage.segment import DamagedSegment, Segment
from hmb.storage.time_index import TimestampOffset


def search(
    segments: Callable[[], Sequence[Segment]],
    timestamp: int | None,
    log_start_offset: int,
    repair: Callable[[DamagedSegment], None],
) -> TimestampOffset | None:
    """Return the first record that is not older than `timestamp` (ms). None stands for the greatest timestamp.

    Return None if the log has no such record. `segments` returns the log's segments. `repair` repairs a segment whose
    damage hides batches, and the search begins again. Raises KafkaError.
    """
    for _ in segments():
        try:
            return _search(segments(), timestamp, log_start_offset)
        except DamagedSegment as damage:
            repair(damage)
    return _search(segments(), timestamp, log_start_offset)


def _search(segments: Sequence[Segment], timestamp: int | None, log_start_offset: int) -> TimestampOffset | None:
    if timestamp is None:
        timestamp = max(segment.max_timestamp for segment in segments)
        if timestamp == NO_TIMESTAMP:
            return None
    return first_at_or_after(segments, timestamp, log_start_offset)


def first_at_or_after(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    """Return the first record that is not older than `timestamp` (ms), or None.

    Raises DamagedSegment if damage hides the batches after it, and MESSAGE_TOO_LARGE for a large compressed message.
    """
    for segment in segments:
        if segment.max_timestamp >= timestamp:
            found = _first_in(segment, timestamp, log_start_offset)
            if found is not None:
                return found
    return None


def _first_in(segment: Segment, timestamp: int, first_offset: int) -> TimestampOffset | None:
    for position, header in segment.headers_from(segment.begin_of_search(timestamp), segment.size):
        try:
            batch = segment.whole(position, header)
            if batch.max_timestamp >= timestamp and batch.last_offset >= first_offset:
                found = _first_of(batch, timestamp, first_offset, segment.config.max_decompressed)
                if found is not None:
                    return found
        except KafkaError as error:
            if error.code is ErrorCode.MESSAGE_TOO_LARGE:
                raise
            segment.damage_reports.report(position, header, error)
    return None


def _first_of(batch: Batch, timestamp: int, first_offset: int, limit: int) -> TimestampOffset | None:
    """Return the first record of a batch with at least this timestamp (ms) and this offset, or None."""
    try:
        check_readable(batch)
        with SEARCHING:
            for head in heads(batch, limit):
                if head.timestamp >= timestamp and head.offset >= first_offset:
                    return TimestampOffset(head.timestamp, head.offset)
    except KafkaError as error:
        if error.code is not ErrorCode.MESSAGE_TOO_LARGE or not isinstance(batch, RecordBatch):
            raise
        return TimestampOffset(batch.max_timestamp, max(batch.base_offset, first_offset))
    return None
