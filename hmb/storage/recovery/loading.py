"""Opening a log: when the broker starts, it finds the segments and the end of the log, and the state of the producers.

After a proper stop, the broker reads only the end of each segment, to check whether the indexes are complete. The
manifest (a list of all segments) shows whether another process has changed a file after the stop (manifest.py).

After a kill or a power cut, the manifest does not contain the final size of the active segment. The broker
therefore checks all batches of this segment (checking.py), and rebuilds the segment's indexes.

The *recovery point* of a log is an offset. All records below this offset have been synced to disk.

If Kafka has used the directory and did not stop properly, HMB does not know which segments have changed. So it
checks the last segment, and all segments that end after the recovery point (earlier records are synced).

If the broker knows that a damaged batch was once correct on disk, it repairs the batch. Otherwise, the log ends
before this batch. The next two items explain both cases:

- The correct bytes of a damaged batch *have been on disk*. This is certain if the broker stopped properly, or
  if the batch is below the recovery point. It is also certain in older segments, because a log syncs a segment
  before it creates the next one. Clients may already have read later records, so the log keeps these records.
  The broker restores the damaged batch, or puts an empty batch with the same offsets in its place (repair.py).
- The correct bytes of a damaged batch *may never have been on disk*. This is possible in the last segment, at
  or after the recovery point, if the broker did not stop properly. A power cut can lose unsynced bytes, but
  leave intact batches after them. Records in these batches can depend on a lost record, so the log ends before
  the damaged batch.

Before the broker cuts intact batches off a log, it copies these batches and the damaged bytes to the file
`<base offset>.log.<position>.cut`.

A gap between the offsets of two neighboring segments has one of two causes. Either compaction has removed the
last records of the first segment, or a segment between the two segments is lost. The manifest shows the cause.
For example, segment 100 ends at offset 150, and the next log file is segment 300. If the manifest says that
segment 200 follows segment 100, segment 200 is lost. If it says that segment 300 follows, no segment is lost.

Example: a log has the segments 0, 100 and 200, and its last record has offset 249. All records below the
recovery point, 220, are on disk. The process is killed, and one batch is damaged. The result at the next start
depends on the first offset of this batch:
- Offset 50 is in a closed segment. If the size or the modification time of the segment's log file has changed,
  the broker repairs the batch during the start. Otherwise, it usually repairs the batch when a client reads it
  (read_checks.py).
- Offset 210 is in the last segment, below the recovery point. The broker repairs the batch during the start.
- Offset 230 is in the last segment, above the recovery point. The broker cuts off the batch and all later
  batches. The next new record gets offset 230.

The broker rebuilds damaged indexes from the log. To restore the producers' state, it loads the newest snapshot
of this state. It then updates the state with the batches that the snapshot lacks.

To rebuild the transaction index of segment 200, the broker must know which transactions were open at offset
200. Snapshots of the producers' state contain the open transactions, so the broker loads a snapshot from offset
200 or earlier.

Source: Kafka 0.7 design, "Log" (recovery); Kafka's `LogLoader`.
"""

from __future__ import annotations

import errno
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import KafkaError
from hmb.records import RecordBatch, parse_batch
from hmb.records.reading import HEADER_PEEK
from hmb.storage.compaction.swap import finish_swaps
from hmb.storage.config import LogConfig
from hmb.storage.failure_isolation import NO_STOP, Stopped
from hmb.storage.files import together
from hmb.storage.log_segments import entry_of
from hmb.storage.offset_index import MAX_RELATIVE_OFFSET
from hmb.storage.producer_state import ProducerState, snapshots
from hmb.storage.recovery.clean_stop import end_offset_from_indexes
from hmb.storage.recovery.repair import SyncedOffsets, append_replacement, repair, replacement_of
from hmb.storage.recovery.scanning import recover
from hmb.storage.segment import Segment
from hmb.storage.state.manifest import BEING_REPLACED, SegmentEntry
from hmb.storage.transaction_index import AbortedTransaction

LOGGER = logging.getLogger(__name__)
SEGMENT_NAME = re.compile(r"([0-9]{20})\.log")


@dataclass(slots=True)
class LoadedLog:
    """The result of opening a log. `segments` is sorted by offset, and its last segment is the active one."""

    segments: list[Segment]
    end_offset: int
    producers: ProducerState


class LogCheckpoint(NamedTuple):
    """The contents of the state files about one log. The broker reads these files before it opens the log."""

    recovery_point: int | None  # all records at lower offsets have been synced; None if unknown
    is_clean: bool  # whether the log was closed properly
    segments: Mapping[int, SegmentEntry] | None = None  # the manifest's entries by base offset; None: no manifest

    @property
    def being_replaced(self) -> Mapping[int, int]:
        """The unfinished replacements: a crash happened while the broker replaced old segments with a new segment.

        The keys are the base offsets of the new segments. Each value is the offset at which the old segments end.
        """
        entries = (self.segments or {}).items()
        return {base_offset: entry.next_offset for base_offset, entry in entries if entry.size == BEING_REPLACED}

    def is_closed(self, base_offset: int) -> bool:
        """Return whether the log has closed the segment at `base_offset`: the log appends nothing more to it.

        For a closed segment, the manifest (the broker's list of all segments) contains the final size of the file.
        """
        entry = self._final_entry(base_offset)
        return entry is not None and entry.size >= 0

    def next_offset(self, base_offset: int) -> int | None:
        """Return the base offset of the segment that follows the segment at `base_offset`.

        The manifest (the broker's list of all segments) contains the result. Return None if the manifest has no entry
        for the segment at `base_offset`, or if this entry can be out of date.
        """
        entry = self._final_entry(base_offset)
        return entry.next_offset if entry is not None else None

    def _final_entry(self, base_offset: int) -> SegmentEntry | None:
        """Return the manifest's entry for a segment, or None if the manifest has no up-to-date entry.

        After a crash, the entry of the last segment can be out of date, because the broker was appending to this
        segment.
        """
        entries = self.segments or {}
        is_final = self.is_clean or base_offset != max(entries, default=base_offset)
        return entries.get(base_offset) if is_final else None


def load(
    directory: Path, config: LogConfig, checkpoint: LogCheckpoint, *, now: int, stop: threading.Event = NO_STOP
) -> LoadedLog:
    """Open the log in `directory`. If the directory is empty, the log has no records.

    `now` is the time (ms) at which the log is opened. Raises Stopped if the event `stop` is set. Raises OSError.
    """
    swapped = finish_swaps(directory, config, checkpoint.being_replaced)
    loading = _Loading(directory, config, checkpoint, swapped, stop)
    loading.run()
    producers = _load_producers(directory, loading.segments, loading.end_offset, ProducerState(now))
    for segment in loading.segments[:-1]:
        segment.finish()  # The check of this segment may have built new indexes, which are not finished yet.
    for segment in loading.segments:
        together.release(segment.files)
    return LoadedLog(loading.segments, loading.end_offset, producers)


def _base_offsets(directory: Path) -> list[int]:
    found = []
    for path in directory.glob("*.log"):
        match = SEGMENT_NAME.fullmatch(path.name)
        if match is None or int(match[1]) > INT64_MAX:
            LOGGER.warning("%s is not a segment (its name is not an offset in 20 digits): ignored", path)
        else:
            found.append(int(match[1]))
    return sorted(found)


class _Loading:
    """Loads one log: checks its segments from the first segment to the last, and repairs them."""

    def __init__(
        self, directory: Path, config: LogConfig, checkpoint: LogCheckpoint, swapped: set[int], stop: threading.Event
    ) -> None:
        self._directory, self._config, self._checkpoint, self._stop = directory, config, checkpoint, stop
        self._swapped = swapped
        found = _base_offsets(directory)
        end = max((entry.next_offset for entry in (checkpoint.segments or {}).values()), default=0)
        self.segments = [Segment(directory, base, config) for base in found or [checkpoint.recovery_point or end]]
        self.end_offset = self.segments[0].base_offset

    def run(self) -> None:
        self._report_missing()
        number = 0
        while number < len(self.segments):
            if self._stop.is_set():
                raise Stopped
            following = self.segments[number + 1].base_offset if number + 1 < len(self.segments) else None
            end_offset = self._look_at(number, following)
            if following is not None:
                self._check_next(number, end_offset, following)
            self.end_offset = max(self.end_offset, end_offset)
            number += 1
        synced_to = self._synced_to(self.segments[-1]) or 0
        if self.end_offset < synced_to:
            self._fill(len(self.segments) - 1, self.end_offset, synced_to)
            self.end_offset = synced_to

    def _report_missing(self) -> None:
        found = {segment.base_offset for segment in self.segments if segment.path.exists()}
        for base_offset, entry in sorted((self._checkpoint.segments or {}).items()):
            if base_offset not in found and entry.size > 0:
                LOGGER.error("%s/%020d.log is missing; it had %d bytes and began at offset %d",
                             self._directory, base_offset, entry.size, base_offset)  # fmt: skip

    def _look_at(self, number: int, following: int | None) -> int:
        """Return the offset after the segment's last batch. If the segment is damaged, repair it first.

        If the segment's files are unchanged since the broker wrote them, a check of the last batches is enough.
        `number` is the index of the segment in `segments`. `following` is the base offset of the next segment; None for
        the last segment.
        """
        segment = self.segments[number]
        segment.transaction_index.is_incomplete = not segment.transaction_index.is_sane()
        if self._may_trust(segment, following):
            try:
                return end_offset_from_indexes(segment)
            except KafkaError as error:
                if segment.size:  # The indexes of a new log do not exist yet, which is no damage.
                    # With the setting `preallocate`, a segment file can end with zeros. These zeros are not damage, but
                    # they cause a KafkaError, so the log level is INFO. Without `preallocate`, a KafkaError can be a
                    # sign of damage, so the log level is WARNING.
                    level = logging.INFO if self._config.preallocate else logging.WARNING
                    LOGGER.log(level, "%s: %s; the whole segment is checked", segment.path, error.message)
        synced = self._synced_offsets(segment, following)
        found = recover(segment, synced.synced_to, self._stop, may_continue=synced.may_continue)
        end_offset = found.end_offset
        if found.is_damaged or end_offset < synced.expected_end:
            segment, end_offset = repair(segment, end_offset, synced, self.segments)
            self.segments[number] = segment
        segment.transaction_index.is_incomplete = True
        if not found.has_transactions and end_offset == found.end_offset:
            segment.transaction_index.replace([])
        return end_offset

    def _may_trust(self, segment: Segment, following: int | None) -> bool:
        """Return whether the segment's files are unchanged since the broker wrote them. Log each changed file."""
        checkpoint, base_offset = self._checkpoint, segment.base_offset
        if base_offset in self._swapped:
            return False
        if checkpoint.segments is None:
            return checkpoint.is_clean or (following is not None and following <= (checkpoint.recovery_point or 0))
        if not checkpoint.is_closed(base_offset):
            return False
        entry, found = checkpoint.segments[base_offset], entry_of(segment, 0)
        if found.aborted != entry.aborted:
            path = segment.transaction_index.path
            LOGGER.error("%s is missing or was changed: the broker builds it again from the log", path)
            segment.transaction_index.is_incomplete = True
        # After a clean stop, no file should change, so the log level for a changed file is WARNING. After a power cut,
        # changed files are normal, because bytes that were not synced can be lost. So the log level is INFO if the stop
        # was not clean.
        level = logging.WARNING if checkpoint.is_clean else logging.INFO
        if found.log != entry.log:
            LOGGER.log(level, "%s was changed after the broker's last write: the broker checks the whole file",
                       segment.path)  # fmt: skip
        elif found.indexes != entry.indexes:
            paths = f"{segment.offset_index.path} or {segment.time_index.path}"
            LOGGER.log(level, "%s was cut or extended after the broker's last write: the broker rebuilds both indexes",
                       paths)  # fmt: skip
        return found.log == entry.log and found.indexes == entry.indexes

    def _synced_offsets(self, segment: Segment, following: int | None) -> SyncedOffsets:
        synced_to = self._synced_to(segment) if following is None else following
        if synced_to is not None:
            synced_to = min(synced_to, segment.base_offset + MAX_RELATIVE_OFFSET)
        if following is None:
            return SyncedOffsets(synced_to, True, synced_to or 0)
        entry = (self._checkpoint.segments or {}).get(segment.base_offset)
        # Compare the sizes before `recover` runs, because `recover` can reduce `segment.size`.
        is_short = entry is not None and segment.size < entry.size
        return SyncedOffsets(synced_to, False, min(entry.next_offset, following) if entry and is_short else 0)

    def _synced_to(self, segment: Segment) -> int | None:
        """Return an offset below which all records of the log were synced, or None if no such offset is known."""
        recovery_point, next_offset = self._checkpoint.recovery_point, self._checkpoint.next_offset(segment.base_offset)
        if self._checkpoint.is_clean:
            return recovery_point if next_offset is None else max(recovery_point or 0, next_offset)
        return segment.base_offset if recovery_point is None else recovery_point

    def _check_next(self, number: int, end_offset: int, following: int) -> None:
        """Check that `segments[number]` ends at the offset `following`, where the next segment begins.

        If offsets between the two segments are lost, fill the gap with empty batches, so that clients can read on.
        """
        segment = self.segments[number]
        if end_offset > following:
            LOGGER.error("%s overlaps the next segment: it ends at %d, not %d", segment.path, end_offset, following)
        if self._checkpoint.segments is not None:
            expected = self._checkpoint.next_offset(segment.base_offset)
            expected = end_offset if expected is None else max(end_offset, expected)
            if expected < following:
                self._fill(number, expected, following)
        elif end_offset < following and not self._config.compacts:
            LOGGER.warning("%s: offsets %d to %d are missing (a segment is lost, or the log was compacted)",
                           self._directory, end_offset, following - 1)  # fmt: skip

    def _fill(self, number: int, first_offset: int, next_offset: int) -> None:
        """Fill the lost offsets `first_offset` to `next_offset - 1`, so that clients can read past them.

        The method appends empty batches to `segments[number]`. It also restores lost ABORT markers that a transaction
        index still lists. Otherwise, their transactions would stay open.

        If the offset `next_offset - 1` is too large for this segment, the method instead adds a new segment with one
        empty batch at this offset. The other lost offsets stay missing.
        """
        segment = self.segments[number]
        LOGGER.error("%s: offsets %d to %d were on disk and are lost; the log continues after them",
                     self._directory, first_offset, next_offset - 1)  # fmt: skip
        lost = self._lost_segments(first_offset, next_offset)
        aborted = [each for lost_segment in lost for each in lost_segment.transaction_index.aborted_in()]
        leader_epoch = newest_leader_epoch(self.segments[: number + 1])
        replacement = replacement_of(first_offset, next_offset, aborted, self.segments, leader_epoch)
        if next_offset - 1 - segment.base_offset > MAX_RELATIVE_OFFSET:
            segment = Segment(self._directory, next_offset - 1, self._config)
            replacement = replacement_of(next_offset - 1, next_offset, (), self.segments, leader_epoch)
            self.segments.insert(number + 1, segment)
        append_replacement(segment, replacement)
        segment.transaction_index.is_incomplete = True
        for lost_segment in lost:
            together.delete(lost_segment.files)

    def _lost_segments(self, first_offset: int, next_offset: int) -> list[Segment]:
        """Return the lost segments whose base offsets are in the range from `first_offset` up to `next_offset`.

        Their log files are lost, but their transaction indexes may still exist.
        """
        lost = []
        for base_offset, entry in sorted((self._checkpoint.segments or {}).items()):
            if first_offset <= base_offset < next_offset:
                lost.append(segment := Segment(self._directory, base_offset, self._config))
                segment.transaction_index.is_incomplete = entry_of(segment, 0).aborted != entry.aborted
        return lost


def newest_leader_epoch(segments: Sequence[Segment]) -> int:
    """Return the leader epoch of the newest batches of a log, or 0 if the log has no batch."""
    for segment in reversed(segments):
        if segment.size:
            last = segment.offset_index.last.position
            # A batch in the old formats v0 and v1 contains no leader epoch, so its `partition_leader_epoch` is -1. But
            # a log's leader epoch is at least 0. So the function returns 0 if all batches are old.
            epochs = (batch.partition_leader_epoch for _, batch in segment.batches(last, segment.size))
            return max(0, max(epochs, default=0))
    return 0


def _load_producers(
    directory: Path, segments: Sequence[Segment], end_offset: int, state: ProducerState
) -> ProducerState:
    """Load a snapshot into `state`, add the later batches, and rebuild incomplete transaction indexes.

    Usually, the function loads the newest intact snapshot. But to rebuild a segment's transaction index, it
    must read the whole segment. It then loads an older snapshot, from the start of the segment or earlier.
    """
    loaded_to = segments[0].base_offset
    wanted = next((segment.base_offset for segment in segments if segment.transaction_index.is_incomplete), end_offset)
    found = snapshots(directory)
    for _, path in found:
        if path.is_dir():  # Because of this directory, the log could not write its snapshot.
            raise IsADirectoryError(errno.EISDIR, "a directory has the name of a snapshot", str(path))
    for offset, path in reversed(found):
        if offset > end_offset:
            path.unlink()  # The snapshot includes batches that recovery has cut off.
        elif offset <= wanted and state.load_snapshot(path):
            loaded_to = offset
            break
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        next_offset = end_offset if following is None else following.base_offset
        if next_offset > loaded_to:
            aborted = list(_replay(state, segment, loaded_to))
            if segment.transaction_index.is_incomplete:
                segment.transaction_index.replace(aborted)
    return state


def _replay(state: ProducerState, segment: Segment, from_offset: int) -> Iterator[AbortedTransaction]:
    """Add a segment's batches to `state`. Yield each aborted transaction.

    Skip batches below `from_offset` or without a producer id.
    """
    positions = segment.producer_batch_positions
    try:
        if positions is None:
            batches = segment.batches_from(from_offset, segment.size)
        else:
            batches = ((position, parse_batch(segment.file.read(HEADER_PEEK, position))) for position in positions)
        for position, batch in batches:
            if isinstance(batch, RecordBatch) and batch.producer_id >= 0 and batch.last_offset >= from_offset:
                whole = segment.whole(position, batch) if batch.is_control else batch
                assert isinstance(whole, RecordBatch)
                if aborted := state.replay(whole):
                    yield aborted
    except KafkaError as error:  # This segment was not checked before.
        LOGGER.error("%s: %s; the broker does not know the producers of the later batches", segment.path, error.message)
