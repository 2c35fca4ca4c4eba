"""Reading a log: which bytes of which segment a fetch gets, which aborted transactions, and the search by time.

A read takes the log's offsets and its segments at one moment, under the log's lock.  Everything here happens after
that, without the lock, so a segment may be deleted or compacted meanwhile.  Its files then still exist, under other
names.  The transaction indexes belong to the same segments as the records, so both are of the same moment.

A reader of committed records gets nothing from the last stable offset on (producer_state.py).  With its records it gets
the aborted transactions among them (transaction_index.py).

A search by time opens batches.  It passes over a batch that is damaged or cannot be read, because no reader gets its
records, and finds the first record that a reader can get.  It does not read a batch that is larger than a broker reads,
or has more records.  The first offset of such a batch is the answer: a reader that starts there misses nothing.

Source: KIP-98; Kafka's `LocalLog.read`, `LogSegment.findOffsetByTimestamp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, Batch, RecordBatch
from hmb.records.filtering import check_readable
from hmb.records.heads import heads
from hmb.storage.batches.opening import SEARCHING, report_damage
from hmb.storage.files.virtual import FileRegion
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimestampOffset
from hmb.storage.transaction_index import AbortedTransaction


class LogSlice(NamedTuple):
    """The result of a read: the offsets that the log had at that moment, and the bytes, if any."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    records: FileRegion | None = None
    aborted: Sequence[AbortedTransaction] = ()  # for readers of committed records
    segment: Segment | None = None  # the one that `records` is a part of

    @property
    def size(self) -> int:
        return self.records.size if self.records else 0


def read(
    segments: Sequence[Segment], active_size: int, offset: int, max_bytes: int, nothing: LogSlice, *, committed: bool
) -> LogSlice:
    """Return the bytes from `offset` on, of one segment: at most `max_bytes`, but the first batch whole.

    `segments` begin with the segment of `offset` and end with the active one.  The active segment had `active_size`
    bytes at the moment of the offsets in `nothing`.  `nothing` is the result where no bytes follow.
    """
    end_offset = nothing.last_stable_offset if committed else nothing.high_watermark
    for number, segment in enumerate(segments):
        # A segment in which nothing follows the offset (it was compacted, or is damaged) leaves it to the next one.
        if max(offset, segment.base_offset) >= end_offset:
            break
        is_active = number + 1 == len(segments)
        size = active_size if is_active else segment.size
        next_offset = nothing.high_watermark if is_active else segments[number + 1].base_offset
        if end_offset < next_offset:
            size, next_offset = segment.position_of(end_offset, size), end_offset
        region = segment.read(offset, max_bytes, size, next_offset)
        if region is not None:
            aborted = _aborted_in(region, segments[number:], offset, next_offset) if committed else ()
            return LogSlice(*nothing[:3], region, aborted, segment)
    return nothing


def _aborted_in(
    region: FileRegion, segments: Sequence[Segment], offset: int, next_offset: int
) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions in a region of the first segment, which ends at `next_offset` at most."""
    if not any(segment.transaction_index.entries for segment in segments):
        return ()
    end = segments[0].offset_at_or_behind(region.position + region.size)
    end_offset = next_offset if end is None else min(end, next_offset)
    return list(aborted_transactions(segments, offset, end_offset))


def aborted_transactions(segments: Sequence[Segment], offset: int, end_offset: int) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions with records from `offset` up to `end_offset`, in the order of their markers.

    `segments` begin with the segment of `offset`.  Raises OSError.
    """
    for segment in segments:
        for transaction in segment.transaction_index.from_offset(offset):
            if transaction.first_offset < end_offset:
                yield transaction
            if transaction.last_stable_offset >= end_offset:
                return


def first_at_or_after(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    """Return the first record that is not older than `timestamp` (ms), or None.

    Raises DamagedSegment where damage hides the batches after it, MESSAGE_TOO_LARGE for a large compressed message.
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
            report_damage(segment, position, header, error)
    return None


def _first_of(batch: Batch, timestamp: int, first_offset: int, limit: int) -> TimestampOffset | None:
    """Return the first record of a batch, from an offset on, that is not older than `timestamp` (ms)."""
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


def newest(segments: Sequence[Segment], log_start_offset: int) -> TimestampOffset | None:
    """Return the first record with the greatest timestamp; None where no record has one.  Raises KafkaError."""
    timestamp = max(segment.max_timestamp for segment in segments)
    return None if timestamp == NO_TIMESTAMP else first_at_or_after(segments, timestamp, log_start_offset)
