"""Reading a log: which bytes of which segment a fetch gets, and which aborted transactions are among them.

A read gets the log's offsets and its segments at one moment, under the log's lock. The functions of this module then
read without the lock, so a segment may be deleted or compacted during a read. The segment's files then still exist
under other names. The transaction indexes belong to the same segments as the records, so records and indexes match.

A reader of committed records gets no records from the last stable offset on (producer_state.py). The response
also lists the aborted transactions among the records (transaction_index.py). The reader leaves their records out.

Source: KIP-98; Kafka's `LocalLog.read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hmb.storage.files.virtual import FileRegion
from hmb.storage.segment import Segment
from hmb.storage.transaction_index import AbortedTransaction


class LogSlice(NamedTuple):
    """The result of a read: the offsets of the log at that moment, and the records that were found."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    records: FileRegion | None = None
    aborted: Sequence[AbortedTransaction] = ()  # for readers of committed records
    segment: Segment | None = None  # the segment that contains `records`

    @property
    def size(self) -> int:
        return self.records.size if self.records else 0


def read(
    segments: Sequence[Segment], active_size: int, offset: int, max_bytes: int, empty: LogSlice, *, committed: bool
) -> LogSlice:
    """Return the bytes of one segment from `offset` on: at most `max_bytes`, but always the whole first batch.

    `segments` begin with the segment of `offset` and end with the active one. `empty` contains the log's offsets. It is
    the result if no bytes follow. `active_size` is the size (bytes) of the active segment at the same moment.
    """
    end_offset = empty.last_stable_offset if committed else empty.high_watermark
    for number, segment in enumerate(segments):
        # Compaction or damage may leave no batch after the offset in a segment. The loop then reads the next segment.
        if max(offset, segment.base_offset) >= end_offset:
            break
        is_active = number + 1 == len(segments)
        size = active_size if is_active else segment.size
        next_offset = empty.high_watermark if is_active else segments[number + 1].base_offset
        if end_offset < next_offset:
            size, next_offset = segment.position_of(end_offset, size), end_offset
        region = segment.read(offset, max_bytes, size, next_offset)
        if region is not None:
            aborted = _aborted_in(region, segments[number:], offset, next_offset) if committed else ()
            return LogSlice(*empty[:3], region, aborted, segment)
    return empty


def _aborted_in(
    region: FileRegion, segments: Sequence[Segment], offset: int, next_offset: int
) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions in a region of the first segment. Its records are below `next_offset`."""
    if not any(segment.transaction_index.entries for segment in segments):
        return ()
    end = segments[0].offset_at_or_after(region.position + region.size)
    end_offset = next_offset if end is None else min(end, next_offset)
    return list(aborted_transactions(segments, offset, end_offset))


def aborted_transactions(segments: Sequence[Segment], offset: int, end_offset: int) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions with records from `offset` up to `end_offset`, in the order of their markers.

    `segments` begin with the segment of `offset`. Raises OSError.
    """
    for segment in segments:
        for transaction in segment.transaction_index.from_offset(offset):
            if transaction.first_offset < end_offset:
                yield transaction
            if transaction.last_stable_offset >= end_offset:
                return
