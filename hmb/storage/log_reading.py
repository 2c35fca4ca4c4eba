"""Reading a log: which bytes of which segment a fetch gets, and which aborted transactions it must know of.

A read takes the log's offsets and its segments at one moment, under the log's lock; everything here happens after that,
outside of it.  So a segment may be deleted or compacted meanwhile.  Its files are still there, under other names, and
the transaction indexes that are asked belong to the same segments as the records: what one of them has lost, the other
does not show any more.

Readers of committed records get nothing from the last stable offset on (producer_state.py), and for what they get the
aborted transactions among it (transaction_index.py).

Source: KIP-98; Kafka's `LocalLog.read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hmb.records import NO_TIMESTAMP
from hmb.storage.files import FileRegion
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimestampOffset
from hmb.storage.transaction_index import AbortedTransaction


class LogSlice(NamedTuple):
    """What a read found: the offsets that the log had at that moment, and the bytes, which may be none."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    records: FileRegion | None = None
    aborted: Sequence[AbortedTransaction] = ()  # for readers of committed records
    segment: Segment | None = None  # which has the records

    @property
    def size(self) -> int:
        return self.records.size if self.records else 0


def read(
    segments: Sequence[Segment], active_size: int, offset: int, max_bytes: int, nothing: LogSlice, *, committed: bool
) -> LogSlice:
    """The bytes from `offset` on, at most `max_bytes` but the first batch whole, from one segment.

    `segments` begin with the one where `offset` belongs and end with the active one, which had `active_size` bytes at
    the moment of the offsets in `nothing`, which is the answer where there are no bytes.
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
    """The transactions in a region of the first of the segments, which ends at `next_offset` at most."""
    if not any(segment.transaction_index.entries for segment in segments):
        return ()
    end = segments[0].offset_at_or_behind(region.position + region.size)
    end_offset = next_offset if end is None else min(end, next_offset)
    return list(aborted_transactions(segments, offset, end_offset))


def aborted_transactions(segments: Sequence[Segment], offset: int, end_offset: int) -> Iterator[AbortedTransaction]:
    """Those that have records from `offset` up to `end_offset`, in the order of their markers.

    `segments` begin with the one where `offset` belongs.  Raises OSError.
    """
    for segment in segments:
        for transaction in segment.transaction_index.from_offset(offset):
            if transaction.first_offset < end_offset:
                yield transaction
            if transaction.last_stable_offset >= end_offset:
                return


def first_at_or_after(segments: Sequence[Segment], timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    """The first record that is not older than `timestamp` (ms)."""
    for segment in segments:
        if segment.max_timestamp >= timestamp:
            found = segment.first_at_or_after(timestamp, log_start_offset, segment.size)
            if found is not None:
                return found
    return None


def newest(segments: Sequence[Segment], log_start_offset: int) -> TimestampOffset | None:
    """The first record with the greatest timestamp; None where no record has one."""
    timestamp = max(segment.max_timestamp for segment in segments)
    return None if timestamp == NO_TIMESTAMP else first_at_or_after(segments, timestamp, log_start_offset)
