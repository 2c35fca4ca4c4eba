"""Scanning: when the broker starts after a crash, it checks all batches of a segment up to the first damaged batch.

For example, a power cut leaves half of a batch at the end of the active segment. `recover` checks the batches from the
first batch on, and rebuilds the indexes from the intact batches. In this example, the third batch is incomplete, so the
log ends after the second batch:
    [ 0..9 ][ 10..19 ][ 20..2                  `recover` returns end_offset 20
                     ^ segment.size

A batch is intact if its length and its CRC are correct (checking.py). `recover` only finds the offset at which
the intact batches end.

The function `repair` (repair.py) usually replaces damaged bytes by restored or empty batches. But if the intact
batches of the last segment end at or after the *recovery point*, `repair` cuts off the rest of the file. The
recovery point is an offset: all records below it have been synced (loading.py).

After the broker has repaired damaged segments, loading.py reads the producers' state from the intact batches.

After a crash, the broker usually checks only the active segment, because a log syncs each segment before it
creates the next one. The broker checks an older segment only if the segment's files may have changed. For
example, the size of a file differs from the size in the *manifest*, a list of all segments (loading.py).

After a clean stop, the broker usually does not check segments whose files are unchanged (clean_stop.py).

The CRC of a batch does not cover the batch's offset. If a damaged disk makes this offset too great, the log
seems to have a gap: offsets seem to be missing before the batch. Real gaps also exist, because compaction
removes records.

If offsets seem to be missing before batch A, `recover` accepts the offset of A in two cases:
- The next batch is intact and has greater offsets than A.
- A is the last batch of the segment, and its offsets are below `upper_limit`. The log has used all offsets
  below `upper_limit`, so the offsets of A are possible.

For example, three batches of 10 records begin at the offsets 10, 20 and 30. A disk error changes the offset of
the second batch to 84. It now looks as if compaction has removed records before 84. But the third batch would
then begin at 94 or above. It begins at 30, so the broker rejects the offset 84.

All offsets of a segment are below the base offset of the next segment. For example, a segment has two batches:
offsets 10 to 19, and offsets 384 to 393. If the next segment begins at offset 100, the second batch is damaged.

Source: Kafka's `LogSegment.recover`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

from hmb.protocol.errors import KafkaError, corrupt_message
from hmb.records.fast.batch_check import CheckedBatch
from hmb.storage.failure_isolation import NO_STOP, Stopped
from hmb.storage.files.windows import Windows
from hmb.storage.offset_index import MAX_POSITION, MAX_RELATIVE_OFFSET
from hmb.storage.recovery import tails
from hmb.storage.recovery.checking import Damage, ProducerBatches, checked_batch
from hmb.storage.segment import Segment


class Recovered(NamedTuple):
    """The result of `recover`: where the intact batches of a segment end, and whether damage follows."""

    end_offset: int  # the offset after the last intact batch; the check stops at the first damaged batch
    is_damaged: bool  # whether the check stopped before the end of the segment's file
    has_transactions: bool


def checked_batches(
    windows: Windows,
    base_offset: int,
    upper_limit: int | None,
    start: tuple[int, int] | None = None,
    *,
    may_continue: bool = True,
) -> Iterator[tuple[int, CheckedBatch]]:
    """Yield `(position, batch)` for each batch of a segment's file before the first damaged batch.

    - `upper_limit`: all records below this offset are on disk. For the last segment, it is the recovery point. For
      any other segment, it is the base offset of the next segment. None means that the limit is unknown.
    - `start`: a pair (position, offset). The check begins at this position, where a batch with this first offset
      should begin. If `start` is None, the check begins with the file's first batch.
    - `may_continue`: whether the segment may contain offsets at or above `upper_limit`. If it is False, a batch
      with such offsets counts as damaged when offsets are missing before the batch.

    Raises Damage at the first damaged batch, and OSError if the file cannot be read.
    """
    position, next_offset = start or (0, base_offset)
    limit = sys.maxsize if may_continue or upper_limit is None else upper_limit
    max_offset, end = base_offset + MAX_RELATIVE_OFFSET, windows.end
    unconfirmed: tuple[int, CheckedBatch] | None = None
    while position < end:
        try:
            checked = checked_batch(windows, position)
            first, last = checked.first_offset, checked.last_offset
            if first < next_offset or last > max_offset or position > MAX_POSITION:
                raise corrupt_message(f"a batch of offsets {first} to {last} where {next_offset} is next")
            if first > next_offset and last >= limit:
                raise corrupt_message(f"a batch of offsets {first} to {last}, but the next segment begins at {limit}")
        except KafkaError as error:
            raise Damage(unconfirmed[0] if unconfirmed else position, error.message) from None
        if unconfirmed:
            yield unconfirmed
            unconfirmed = None
        if first > next_offset:
            unconfirmed = position, checked  # Offsets are missing, so check the next batch before returning this one.
        else:
            yield position, checked
        position += checked.size
        next_offset = last + 1
    if unconfirmed:
        if upper_limit is None or upper_limit < next_offset:
            position, batch = unconfirmed
            raise Damage(position, f"offsets are missing before {batch.first_offset}, the offset of the last batch")
        yield unconfirmed


def recover(
    segment: Segment, upper_limit: int | None = None, stop: threading.Event = NO_STOP, *, may_continue: bool = True
) -> Recovered:
    """Check a segment's batches up to the first damaged batch, and rebuild the offset and time indexes.

    The function sets `segment.size` to the position at which the intact batches end. Damaged bytes after this
    position stay in the file. If the file is preallocated and contains nothing but zeros after this position, it is
    not damaged. The function then cuts off the zeros. `checked_batches` explains `upper_limit` and `may_continue`.

    Raises Stopped if `stop` is set. Also raises OSError.
    """
    with segment.indexes_recreated():
        producers = ProducerBatches()
        segment.size, end_offset, is_damaged = 0, segment.base_offset, False
        try:
            windows = Windows.of(segment.file)
            for position, batch in checked_batches(
                windows, segment.base_offset, upper_limit, may_continue=may_continue
            ):
                segment.index_batch(batch.last_offset, position, batch.size, batch.max_timestamp, batch.last_offset)
                end_offset, segment.size = batch.last_offset + 1, position + batch.size
                if batch.producer_id >= 0:
                    producers.add_batch(position, batch.producer_id, batch.attributes)
                if stop.is_set():
                    raise Stopped
        except Damage:
            if segment.config.preallocate and tails.is_all_zeros(segment.file.open(), segment.size):
                segment.truncate()
            else:
                is_damaged = True
        segment.producer_batch_positions = producers.positions()
        return Recovered(end_offset, is_damaged, producers.has_transactions)
