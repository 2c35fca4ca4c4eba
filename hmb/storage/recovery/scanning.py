"""Scanning: find the end of a segment's log from its indexes, or by a check of every batch.

After a proper stop `end_by_indexes` reads only the batches after the last index entry, and compares them with the
indexes. If they do not match, or after a kill, `recover` checks every batch and rebuilds the indexes.

For example, a power cut leaves half of a batch at the end of the active segment. `recover` finds that the batch's CRC
is wrong. The log then ends after the batch before it. The start truncates the file there, and reads the state of the
producers from the remaining batches (loading.py). Earlier segments need no check, because a log syncs each segment
before it creates the next one.

Source: Kafka's `LogSegment.recover`.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP
from hmb.storage.recovery import tails
from hmb.storage.recovery.checking import NO_STOP, Damage, ProducerBatches, Stopped, checked_batches
from hmb.storage.segment import Segment

MAX_UNINDEXED = 1 << 20  # allowance (bytes) for one append, whose batches may share one index entry


class Recovered(NamedTuple):
    """The end of a segment that `recover` has checked, and whether damage follows this end."""

    end_offset: int  # the offset after the last batch of the undamaged beginning
    is_damaged: bool  # whether bytes follow the undamaged beginning
    has_transactions: bool


def end_by_indexes(segment: Segment) -> int:
    """Return the offset after the last whole batch. Read only the batches after the last index entry.

    Raises KafkaError if the end of the log does not match the ends of the indexes, or is not a whole batch. In this
    case the last entries of the indexes were not written, or the indexes belong to another log. Raises OSError.
    """
    for index in (segment.offset_index, segment.time_index):
        if not index.is_sane():
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{index.path.name} is missing or damaged")
    entry, newest = segment.offset_index.last, segment.max_timestamp
    last, has_last = segment.time_index.last, False
    end_offset, size = segment.base_offset, entry.position
    for position, batch in segment.batches(entry.position, segment.size):
        if position == entry.position and position and batch.last_offset > entry.offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{segment.offset_index.path.name} is an index of another log")
        if position - entry.position > segment.config.index_interval_bytes + MAX_UNINDEXED:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{segment.offset_index.path.name} lacks entries")
        if batch.last_offset < end_offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"position {position}: offsets go back")
        has_last |= end_offset <= last.offset <= batch.last_offset and batch.max_timestamp == last.timestamp
        end_offset, size = batch.last_offset + 1, position + batch.size
        newest = max(newest, batch.max_timestamp)
    if size != segment.size or (entry.position and end_offset <= entry.offset):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"position {size} of {segment.size}: not a whole batch")
    has_last = has_last or last.timestamp == NO_TIMESTAMP or segment.has_timestamp(last)
    if newest != segment.max_timestamp or not has_last:
        why = f"{segment.time_index.path.name} is an index of another log, or lacks entries"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
    segment.first_timestamp = next((first.max_timestamp for _, first in segment.batches(0, segment.size)), None)
    return end_offset


def recover(
    segment: Segment, following: int | None = None, stop: threading.Event = NO_STOP, *, may_go_on: bool = True
) -> Recovered:
    """Check every batch, and rebuild the offset index and the time index.

    `following` and `may_go_on` are those of `checked_batches`. Set the segment's `size` to the length of the
    undamaged beginning. The file keeps all its bytes, except the zeros of a preallocated file. Raises Stopped, OSError.
    """
    with segment.indexes_made_anew():
        producers = ProducerBatches()
        segment.size, end_offset, is_damaged = 0, segment.base_offset, False
        try:
            batches = checked_batches(segment.windows(), segment.base_offset, following, may_go_on=may_go_on)
            for position, (_, size, last_offset, timestamp, producer_id, attributes) in batches:
                segment.note(last_offset, position, size, timestamp, last_offset)
                end_offset, segment.size = last_offset + 1, position + size
                if producer_id >= 0:
                    producers.note(position, producer_id, attributes)
                if stop.is_set():
                    raise Stopped
        except Damage:
            if segment.config.preallocate and tails.is_all_zeros(segment.file.open(), segment.size):
                segment.truncate()
            else:
                is_damaged = True
        segment.producer_batches = producers.positions()
        return Recovered(end_offset, is_damaged, producers.has_transactions)
