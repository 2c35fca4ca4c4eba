"""Finds the part of a segment that a fetch returns, and the aborted transactions in this part.

To read a log, a thread first copies the log's offsets and the list of segments. It holds the log's lock only during
this copy. The functions of this module then read without the lock.

During a read, another thread may delete or compact a segment. The read usually continues in the old files, because the
broker keeps them under other names for `file.delete.delay.ms`. (If the disk is full, the broker can remove them
earlier.) The read takes the records and the aborted transactions from the same old segment, so they match.

With the isolation level read_committed, a fetch returns only records below the last stable offset
(producer_state.py). These records can belong to aborted transactions. The response lists these transactions
(transaction_index.py), so the consumer can skip their records.

Source: KIP-98; Kafka's `LocalLog.read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hmb.protocol.errors import KafkaError
from hmb.records import parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.files.virtual import FileRegion
from hmb.storage.segment import Segment
from hmb.storage.transaction_index import AbortedTransaction


class LogOffsetSnapshot(NamedTuple):
    """The offsets of a log at one moment."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int


class FetchDataInfo(NamedTuple):
    """The result of a read: the offsets of the log at the time of the read, and the region with the records, if any."""

    offsets: LogOffsetSnapshot
    records: FileRegion | None = None
    aborted: Sequence[AbortedTransaction] = ()  # empty unless the reader wants committed records only
    segment: Segment | None = None  # the segment that contains `records`

    @property
    def size(self) -> int:
        return self.records.size if self.records else 0


def find_records(
    segments: Sequence[Segment],
    active_size: int,
    offset: int,
    max_bytes: int,
    offsets: LogOffsetSnapshot,
    *,
    committed: bool,
) -> FetchDataInfo:
    """Return the region of a file that contains the records from `offset` on, but do not read the records.

    The region begins with the batch that contains `offset`, or with the next batch. It has at most `max_bytes`
    bytes. But if the first batch is larger, the region is exactly this batch.

    The region contains only records below the high watermark or, if `committed` is True, below the last stable
    offset. If no such records exist, the result contains no region.

    `segments` begins with the segment that contains `offset`, and ends with the active segment, which has
    `active_size` bytes. `offsets` contains the offsets of the log. Raises DamagedSegment, OSError.
    """
    end_offset = offsets.last_stable_offset if committed else offsets.high_watermark
    for number, segment in enumerate(segments):
        # Compaction or damage can remove the last batches of a segment. If no batch at or after `offset` remains, the
        # loop tries the next segment.
        if max(offset, segment.base_offset) >= end_offset:
            break
        is_active = number + 1 == len(segments)
        size = active_size if is_active else segment.size
        next_offset = offsets.high_watermark if is_active else segments[number + 1].base_offset
        if end_offset < next_offset:
            size, next_offset = segment.position_of(end_offset, size), end_offset
        region = segment.read(offset, max_bytes, size, next_offset)
        if region is not None:
            aborted = _aborted_in(region, segments[number:], offset, next_offset) if committed else ()
            return FetchDataInfo(offsets, region, aborted, segment)
    return FetchDataInfo(offsets)


def _aborted_in(
    region: FileRegion, segments: Sequence[Segment], offset: int, next_offset: int
) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions in `region`, which is a part of the first segment in `segments`.

    The region begins with the batch that contains `offset`, or with the next batch if no batch contains `offset`.
    All records in the region have offsets below `next_offset`.

    The offset index contains only some batches, so the function cannot always find the exact end of the region. The
    result can therefore also contain transactions that begin shortly after the region.
    """
    if not any(segment.transaction_index.entries for segment in segments):
        return ()
    end = _indexed_offset(segments[0], region.position + region.size)
    end_offset = next_offset if end is None else min(end, next_offset)
    return list(aborted_transactions(segments, offset, end_offset))


def _indexed_offset(segment: Segment, position: int) -> int | None:
    """Return the last offset of the first indexed batch at or after `position`, a byte position in the log file.

    A batch is indexed if the offset index has an entry for it. Return None if no such batch exists, or if the entry
    does not match the log.
    """
    entry = segment.offset_index.at_or_after(position)
    if entry is None:
        return None
    try:
        header = parse_batch(segment.file.read(HEADER_PEEK, entry.position))
    except KafkaError:  # The index entry is damaged.
        return None
    return header.last_offset if header.last_offset == entry.offset else None


def aborted_transactions(segments: Sequence[Segment], offset: int, end_offset: int) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions that have offsets at or after `offset` and before `end_offset`.

    `segments` must begin with the segment that contains `offset`. The transactions come in the order in which they
    were aborted. Raises OSError if a transaction index cannot be read.
    """
    for segment in segments:
        for transaction in segment.transaction_index.from_offset(offset):
            if transaction.first_offset < end_offset:
                yield transaction
            if transaction.last_stable_offset >= end_offset:
                return
