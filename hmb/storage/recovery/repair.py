"""Repairing a segment: the broker replaces damaged bytes, so that clients can read the intact batches after them.

A client always fetches the offset after the last batch that it got. If the next batch is damaged, the client cannot
read this batch, and would fetch the same offset forever. The broker therefore replaces the damaged bytes. They are
called a *hole*, because there are usually intact batches before and after them. For example:
    file      [ 0..4 ][ 5..9 ][ ?????? ][ 12..13 ]         a hole: offsets 10 and 11 are lost
    repaired  [ 0..4 ][ 5..9 ][ 10..11, no records ][ 12..13 ]

The broker replaces a hole in one of three ways. It tries them in this order:
1. *The original batch.* The CRC of a batch does not cover the offset, the length and the magic (the format
   version). The broker writes the expected values into these fields. For example, the expected offset follows
   the last offset before the hole. If the batch then has a correct CRC, no record is lost.
2. *The marker of a transaction.* Without its marker, a transaction would stay open, or would end at the
   producer's next marker. If only one bit of a marker is wrong, the broker flips each bit in turn until the CRC
   is correct. If this fails, the broker creates the ABORT markers that the transaction index lists.
3. *An empty batch* with the lost offsets. Compaction also leaves empty batches, so all clients can read past
   them.

If a hole is at the end of the file, the broker cuts it off, and appends the new batches. In the middle of the
file, new batches of another size would move all later batches. The broker therefore writes a repaired copy of
the segment, and replaces the segment by this copy (swap.py).

The broker copies damaged bytes to a `.cut` file in the directory of the segment. After the repair, the segment has no
damage any more, so the broker logs the damage only once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import NamedTuple

from hmb.protocol.errors import KafkaError
from hmb.records import (
    Batch,
    ControlType,
    EndTransactionMarker,
    encode_marker,
    iter_batches,
    parse_batch,
)
from hmb.records.batch import LOG_OVERHEAD, MAGIC, MAGIC_POSITION, OFFSET_AND_LENGTH
from hmb.records.changed_batch import encode_empty_batch
from hmb.records.fast.batch_check import CheckedBatch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.compaction import swap
from hmb.storage.files import together
from hmb.storage.files.windows import Windows
from hmb.storage.offset_index import MAX_RELATIVE_OFFSET
from hmb.storage.recovery import tails
from hmb.storage.recovery.checking import Damage, end_of_whole_batches, next_whole_batch
from hmb.storage.recovery.scanning import checked_batches, recover
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimestampOffset
from hmb.storage.transaction_index import AbortedTransaction

LOGGER = logging.getLogger(__name__)
LARGEST_MARKER = 100  # greatest size of a marker's batch, in bytes
LARGEST_RESTORED = 64 << 20  # bytes. The broker does not try to restore a batch if the damaged part is larger.


class Hole(NamedTuple):
    """A damaged part of a segment's file, with the offsets that are lost and the batches that replace this part."""

    position: int
    end: int  # the position of the first byte after the damaged part
    first_offset: int
    next_offset: int  # first offset after the damaged part; offsets from `first_offset` to `next_offset` - 1 are lost
    why: str
    replacement: bytes = b""
    is_restored: bool = False  # whether `replacement` contains the original batch, so no record is lost


class SyncedOffsets(NamedTuple):
    """Offsets that show which records of a segment the broker had synced before it stopped or crashed.

    - `synced_to`: the broker had synced all records below this offset. Later records may never have reached the
      disk, so the log ends before the first damage in them. None means that the whole segment is synced, but its last
      offset is unknown.
    - `may_continue`: whether the segment may contain batches at or above `synced_to`. This is True only for the
      last segment of a log.
    - `expected_end`: the segment should end at this offset or a greater one. If it ends at a lower offset, its
      last records are lost.
    """

    synced_to: int | None
    may_continue: bool
    expected_end: int = 0


class Repaired(NamedTuple):
    """The result of a repair: a segment without damage, and the offset after its last batch."""

    segment: Segment
    end_offset: int


def repair(segment: Segment, end_offset: int, synced: SyncedOffsets, segments: Sequence[Segment]) -> Repaired:
    """Repair a damaged segment when the broker starts.

    The number `segment.size` counts only the intact bytes at the beginning of the file. They contain the records
    below `end_offset`. `segments` contains all segments of the log. If the function raises OSError, the broker
    tries again at its next start.
    """
    search = HoleSearch(segment, synced, segments)
    holes = search.holes(segment.size, end_offset)
    if search.end_offset < synced.expected_end:
        holes.append(search.lost_end())
    for hole in holes:
        report(segment, hole)
    if not holes:
        # The file is not damaged. An earlier call of `recover` rejected the last batch, because offsets are missing
        # before it. With the limit `search.end_offset`, `recover` now accepts the batch.
        recover(segment, search.end_offset)
        return Repaired(segment, search.end_offset)
    if holes[0].position == segment.size and holes[0].end == Windows.of(segment.file).end:
        segment.truncate()
        append_replacement(segment, holes[0].replacement)
        return Repaired(segment, search.end_offset)
    new = written_again(segment, holes, search.end_offset)
    swap.make_ready(new)
    together.mark_deleted(segment.files)
    swap.put_in_place(new)
    together.delete(segment.files)
    return Repaired(new, search.end_offset)


def repaired_copy(segment: Segment, next_offset: int, segments: Sequence[Segment]) -> Segment | None:
    """Return a repaired copy of a segment, or None if the segment is intact. Raises OSError.

    The caller puts the copy into the log. During the repair, threads can read the segment, but no thread appends to
    it. The next segment begins at `next_offset`, or the log ends there.
    """
    is_short = Windows.of(segment.file).end < segment.size
    search = HoleSearch(segment, SyncedOffsets(next_offset, False, next_offset if is_short else 0), segments)
    holes = search.holes(0, segment.base_offset)
    if search.end_offset < search.synced.expected_end:
        holes.append(search.lost_end())
    if not holes and segment.path.exists():
        return None
    for hole in holes:
        report(segment, hole)
    return written_again(segment, holes, next_offset)


def append_replacement(segment: Segment, replacement: bytes) -> None:
    """Append the batches in `replacement` to the end of a segment, and sync the segment. Raises OSError.

    These batches replace lost or damaged batches. The caller has already removed any damaged bytes from the
    segment's end.
    """
    for batch in iter_batches(replacement):
        segment.append([batch.view], batch.last_offset, TimestampOffset(batch.max_timestamp, batch.last_offset))
    segment.producer_batch_positions = None  # The positions of the new batches are unknown.
    segment.flush()


def replacement_of(
    first_offset: int,
    next_offset: int,
    aborted: Sequence[AbortedTransaction],
    segments: Sequence[Segment],
    leader_epoch: int,
) -> bytes:
    """Return the batches that replace lost batches: empty batches, and ABORT markers of transactions.

    The lost offsets begin at `first_offset` and end before `next_offset`. `aborted` contains the transactions whose
    ABORT markers were lost. The result contains no marker for a transaction whose first batch was lost.

    One empty batch replaces all lost offsets between two markers. If more than 2^31 offsets are lost between them,
    the empty batch contains only the last 2^31 offsets.
    """
    parts = []
    for each in aborted:
        begin = _batch_with(each.first_offset, segments)
        if begin is not None and begin.producer_id == each.producer_id:
            parts += _empty(first_offset, each.last_offset, leader_epoch)
            marker, producer = EndTransactionMarker(ControlType.ABORT, 0), (begin.producer_id, begin.producer_epoch)
            places = {"base_offset": each.last_offset, "leader_epoch": leader_epoch}
            parts.append(encode_marker(marker, begin.max_timestamp, *producer, **places))
            first_offset = each.last_offset + 1
    return b"".join([*parts, *_empty(first_offset, next_offset, leader_epoch)])


def _empty(first_offset: int, next_offset: int, leader_epoch: int) -> list[bytes]:
    first_offset = max(first_offset, next_offset - 1 - MAX_RELATIVE_OFFSET)
    return [encode_empty_batch(first_offset, next_offset - 1, leader_epoch)] if first_offset < next_offset else []


class HoleSearch:
    """Searches one segment for holes (damaged bytes), and creates a replacement for each hole.

    If possible, the replacement is the original batch. Otherwise, it consists of empty batches with the lost
    offsets, and the lost ABORT markers that the transaction index lists.

    If the log ends at the hole, the replacement has 0 bytes.
    """

    def __init__(self, segment: Segment, synced: SyncedOffsets, segments: Sequence[Segment]) -> None:
        self._segment = segment
        self._windows = Windows.of(segment.file)
        self.synced = synced
        self._segments = segments
        self._leader_epoch = 0  # leader epoch of the last intact batch before a hole
        self.end_offset = segment.base_offset  # the end offset of the part that is repaired so far

    def holes(self, position: int, next_offset: int) -> list[Hole]:
        """Return the holes (damaged parts) of the segment's file at or after `position`.

        All bytes before `position` are intact. They contain the segment's offsets below `next_offset`. Raises OSError.
        """
        holes: list[Hole] = []
        windows, limit = self._windows, self.synced.synced_to
        before = list(self._segment.batches_from(next_offset - 1, position)) if position else []
        self._set_leader_epoch(before[-1][0] if before else None)
        while True:
            last, why = None, ""
            try:
                start = position, next_offset
                may_continue = self.synced.may_continue
                for last, checked in checked_batches(
                    windows, self._segment.base_offset, limit, start, may_continue=may_continue
                ):
                    position, next_offset = last + checked.size, checked.last_offset + 1
            except Damage as damage:
                why = damage.message
            self.end_offset = next_offset
            if not why:
                return holes
            self._set_leader_epoch(last)
            if limit is not None and next_offset >= limit:
                return [*holes, Hole(position, windows.end, next_offset, next_offset, why)]
            following = self._next_intact(position, next_offset)
            if not position and following is not None:
                self._set_leader_epoch(following[0])
            if following is None or following[0] > position:
                holes.append(self._hole(position, next_offset, following, why))
                position = holes[-1].end
            next_offset = following[1].first_offset if following else holes[-1].next_offset

    def lost_end(self) -> Hole:
        """Return a `Hole` for the offsets that are lost at the end of the segment.

        The hole has 0 bytes, because the file does not contain the batches with these offsets any more.
        """
        first_offset, self.end_offset, end = self.end_offset, self.synced.expected_end, self._windows.end
        aborted = self._segment.transaction_index.aborted_in(first_offset, self.end_offset)
        replacement = replacement_of(first_offset, self.end_offset, aborted, self._segments, self._leader_epoch)
        return Hole(end, end, first_offset, self.end_offset, "the file ends too early", replacement)

    def _set_leader_epoch(self, position: int | None) -> None:
        if position is not None:
            batch = parse_batch(*self._windows.at(position, HEADER_PEEK))
            self._leader_epoch = max(0, batch.partition_leader_epoch)

    def _next_intact(self, position: int, next_offset: int) -> tuple[int, CheckedBatch] | None:
        """Return the position and the content of the next intact batch whose offset is correct, or None.

        The CRC of a batch does not cover the offset, so a batch with a wrong offset can look intact. The search accepts
        a batch only if it meets both conditions:

        - The batch ends at or after `next_offset`, and the segment can contain its offsets.
        - If another intact batch follows, that batch has greater offsets.
        """
        limit, start = self.synced.synced_to, position
        found = next_whole_batch(self._windows, position, next_offset)
        while found is not None:
            position, batch = found
            after = next_whole_batch(self._windows, position + batch.size, next_offset)
            gap, count = batch.first_offset - next_offset, batch.last_offset - batch.first_offset + 1
            # A batch at `start` directly follows the batch before it, so no batch is lost. If the batch has as many
            # offsets as are missing, the missing offsets belong to it, and its offset field is damaged.
            is_moved = position == start and gap == count
            is_last = self.synced.may_continue and batch.first_offset == limit and not is_moved
            is_inside = limit is None or batch.last_offset < limit or is_last
            if is_inside and (after is None or after[1].first_offset > batch.last_offset):
                return found
            found = after
        return None

    def _hole(self, position: int, first_offset: int, following: tuple[int, CheckedBatch] | None, why: str) -> Hole:
        end, next_offset = self._windows.end, max(first_offset, self.synced.synced_to or 0)
        if following is not None:
            end, next_offset = following[0], following[1].first_offset
        if end - position <= LARGEST_RESTORED:
            view, index = self._windows.at(position, end - position)
            data, offsets = bytes(view[index : index + end - position]), (first_offset, next_offset)
            intact = _restored(data, *offsets) or _with_one_bit_flipped(data, *offsets)
            if intact is not None:
                return Hole(position, end, *offsets, why, intact, is_restored=True)
        aborted = self._segment.transaction_index.aborted_in(first_offset, next_offset)
        replacement = replacement_of(first_offset, next_offset, aborted, self._segments, self._leader_epoch)
        return Hole(position, end, first_offset, next_offset, why, replacement)


def _batch_with(offset: int, segments: Sequence[Segment]) -> Batch | None:
    """Find the batch that contains `offset`, and return the header of this batch. Return None if the batch is lost."""
    segment = next((each for each in reversed(segments) if each.base_offset <= offset), None)
    try:
        batches = segment.batches_from(offset, segment.size) if segment else iter(())
        return next((batch for _, batch in batches if batch.last_offset >= offset), None)
    except KafkaError:
        return None


def _restored(data: bytes, first_offset: int, next_offset: int) -> bytes | None:
    """Repair a batch in which only the offset, the length or the magic is damaged. Return None if this fails."""
    if len(data) <= MAGIC_POSITION:
        return None
    length = len(data) - LOG_OVERHEAD
    candidates = [
        OFFSET_AND_LENGTH.pack(first_offset, length) + data[12:MAGIC_POSITION] + bytes([MAGIC]) + data[17:],
        OFFSET_AND_LENGTH.pack(next_offset - 1, length) + data[12:],  # a message v0 or v1
    ]
    return next((each for each in candidates if _fits(each, first_offset, next_offset)), None)


def _with_one_bit_flipped(data: bytes, first_offset: int, next_offset: int) -> bytes | None:
    """Repair a transaction marker in which only one bit is damaged. Return None if this fails."""
    if len(data) > LARGEST_MARKER:
        return None
    for bit in range(8 * len(data)):
        candidate = bytearray(data)
        candidate[bit // 8] ^= 1 << bit % 8
        if _fits(candidate, first_offset, next_offset) and parse_batch(candidate).is_control:
            return bytes(candidate)
    return None


def _fits(data: bytes | bytearray, first_offset: int, next_offset: int) -> bool:
    """Return whether these bytes are an intact batch with exactly these offsets."""
    try:
        batch = parse_batch(data)
        batch.check()
        if batch.size != len(data) or batch.last_offset != next_offset - 1:
            return False
        return batch.base_offset == first_offset
    except KafkaError:
        return False


def written_again(segment: Segment, holes: Sequence[Hole], end_offset: int) -> Segment:
    """Write and return a repaired copy of a segment. The caller puts the copy into the log.

    Each element of `holes` contains the position of damaged bytes and their replacement. Raises OSError.
    """
    path = segment.path.with_name(f"{segment.path.name}{swap.CLEANED}")
    windows, position = Windows.of(segment.file), 0
    with path.open("wb") as file:
        for hole in holes:
            file.writelines(windows.chunks(position, hole.position))
            file.write(hole.replacement)
            position = hole.end
        file.writelines(windows.chunks(position, windows.end))
    if segment.path.exists():
        modified = segment.path.stat().st_mtime_ns  # Retention uses this time for messages without timestamps.
        os.utime(path, ns=(modified, modified))
    copy = Segment(path.parent, segment.base_offset, segment.config, suffix=swap.CLEANED)
    recover(copy, end_offset)
    copy.transaction_index.replace(segment.transaction_index.aborted_in())
    return copy


def report(segment: Segment, hole: Hole) -> None:
    """Log the position and the offsets of a hole (damaged or missing bytes), and copy damaged bytes to a `.cut` file.

    If the log continues after the hole, the `.cut` file contains only the bytes of the hole. If the log ends at the
    hole, the file contains all bytes from the hole to the end of the segment.

    In three cases, the function writes no `.cut` file:

    - The original batch is restored, so no record is lost.
    - The end of the segment's file is missing. There are then no damaged bytes to copy.
    - The log ends at the hole, and the rest of the file contains no whole batch.

    Raises OSError.
    """
    where = f"{segment.path}, position {hole.position}: {hole.why}"
    windows, first, last = Windows.of(segment.file), hole.first_offset, hole.next_offset - 1
    if hole.is_restored:
        LOGGER.error("%s; offsets %d to %d are restored: their CRC is right", where, first, last)
    elif hole.position == windows.end:
        LOGGER.error("%s; offsets %d to %d are lost", where, first, last)
    elif first <= last or hole.end < windows.end:
        kept = tails.keep(segment.path, hole.position, hole.end)
        LOGGER.error("%s; offsets %d to %d are lost; the log goes on after them; the damaged bytes are kept in %s",
                     where, first, last, kept)  # fmt: skip
    elif end_of_whole_batches(windows, hole.position, hole.next_offset) is None:
        LOGGER.warning("%s; no whole batch follows, so the broker cuts off the rest; the segment ends at offset %d",
                       where, hole.next_offset)  # fmt: skip
    else:
        LOGGER.error("%s; the broker cuts off the rest, which contains whole batches; the segment ends at offset %d. "
                     "The removed bytes are kept in the file %s. To read this file with hmb dump-log, copy the file "
                     "to another directory under the name 0.log. Delete the file when you do not need it any more",
                     where, hole.next_offset, tails.keep(segment.path, hole.position))  # fmt: skip
