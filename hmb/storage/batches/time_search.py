"""Searches a log for the first record with a given timestamp or a greater one (for ListOffsets).

The time index of a segment limits the search to a few batches (time_index.py). The search reads the records of these
batches. If a batch is damaged or cannot be decoded, the search skips it, because no consumer can read its records.

A record batch can be larger than the broker's limit for decompressed data, or contain too many records. The
search by time does not read the records of such a batch. If the batch can contain the wanted record, the search
returns the first offset of the batch. A reader that starts at this offset misses no record.

Source: KIP-33; KIP-734; Kafka's `LogSegment.findOffsetByTimestamp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, Batch, RecordBatch
from hmb.records.filtering import check_readable
from hmb.records.partial_records import partial_records
from hmb.storage.batches.decoding import SEARCHING
from hmb.storage.recovery.index_rebuild import rebuild_indexes
from hmb.storage.segment import DamagedSegment, Segment
from hmb.storage.time_index import TimestampOffset


def search(
    segments: Callable[[], Sequence[Segment]],
    timestamp: int | None,
    log_start_offset: int,
    repair: Callable[[DamagedSegment], None],
) -> TimestampOffset | None:
    """Return a log's first record whose timestamp is `timestamp` (ms) or greater.

    If `timestamp` is None, return the first record with the greatest timestamp in the log.

    Return None if no such record exists.

    `segments()` returns the log's segments. If a damaged segment stops the search, the function calls `repair` with
    the error, and searches again.

    Raises KafkaError if the repair fails, or if damage still stops the search after the repairs. Raises
    MESSAGE_TOO_LARGE if a compressed message (v0 or v1) is larger than the limit for decompressed data.
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
    """Return the first record whose timestamp is `timestamp` (ms) or greater, or None if no such record exists.

    Raises DamagedSegment if the search cannot continue because a segment is damaged. Raises MESSAGE_TOO_LARGE if a
    compressed message (v0, v1) is larger than the limit for decompressed data.
    """
    for segment in segments:
        if segment.max_timestamp >= timestamp:
            found = _first_in(segment, timestamp, log_start_offset)
            if found is not None:
                return found
    return None


def _first_in(segment: Segment, timestamp: int, first_offset: int) -> TimestampOffset | None:
    for position, header in segment.batches_at_or_after(_begin_of_search(segment, timestamp), segment.size):
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


def _begin_of_search(segment: Segment, timestamp: int) -> int:
    """Return the offset at which the search begins. Records at lower offsets are older than `timestamp` (ms).

    The offset comes from an entry of the segment's time index. A damaged entry can contain a larger offset, and the
    search would miss records. So the function first compares the entry with the log. If they differ, the function
    rebuilds the index, and returns the first offset of the segment.
    """
    entry = segment.time_index.lookup(timestamp)
    if entry.timestamp == NO_TIMESTAMP or has_timestamp(segment, entry):
        return entry.offset
    why = f"timestamp {entry.timestamp} is not that of offset {entry.offset}"
    rebuild_indexes(segment, segment.time_index, why)
    return segment.base_offset


def has_timestamp(segment: Segment, entry: TimestampOffset) -> bool:
    """Return whether an entry of the time index agrees with the log.

    An entry contains an offset and a timestamp. The log must contain a batch with this offset, and the greatest
    timestamp in this batch must be the timestamp of the entry.
    """
    found = segment.find(entry.offset, segment.size)
    return found is not None and found[1].max_timestamp == entry.timestamp


def _first_of(batch: Batch, timestamp: int, first_offset: int, limit: int) -> TimestampOffset | None:
    """Return the batch's first record at or after `first_offset` whose timestamp is `timestamp` (ms) or greater."""
    try:
        check_readable(batch)
        with SEARCHING:
            for record in partial_records(batch, limit):
                if record.timestamp >= timestamp and record.offset >= first_offset:
                    return TimestampOffset(record.timestamp, record.offset)
    except KafkaError as error:
        if error.code is not ErrorCode.MESSAGE_TOO_LARGE or not isinstance(batch, RecordBatch):
            raise
        return TimestampOffset(batch.max_timestamp, max(batch.base_offset, first_offset))
    return None
