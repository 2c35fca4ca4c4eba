"""Opening a log: which segments there are, where it ends, and what its producers did.

After a clean stop nothing is read but the end of each segment, which shows whether its indexes are complete and whether
it reaches to the next one.  After a kill or a power cut, every segment that ends behind the recovery point is checked
batch by batch (recovery.py) and its indexes are made anew.  What happens at the first damaged place depends on whether
it was on disk once; the recovery point says that.

- *Behind the recovery point* the log ends there.  After a power cut its unsynced pages may be on disk in any order, so
  that whole batches may follow a hole; but a log never has a later record without the earlier ones.  A torn end is just
  cut off.  Where whole batches follow, in this segment or in later ones, the bytes are first kept beside them, in
  `<base offset>.log.<position>.cut`.
- *Before the recovery point* the disk has lost something that it had, and readers may have seen what follows.  The file
  is kept as it is, reads go on at the next segment, and if there is none, a new one is begun behind the last offset
  that is known: no offset is given out a second time.  An empty file `<base offset>.log.damaged` beside it says that
  each start has to check it again, also after a clean stop, until it is mended.

Without a recovery point (its checkpoint is missing or damaged) everything is checked, and only the last segment counts
as unsynced.  Segments that leave a gap or overlap are reported, and read in their order; a gap behind the recovery
point ends a log that is not compacted, as damage does.

Damaged indexes are made again from the log, the producers' state is the newest snapshot plus the batches behind it.
For a transaction index, too, one has to know which transactions were open where its segment begins, so the replay then
begins at a snapshot from before it.

Source: kafka-0.7-design (log recovery); Kafka's `LogLoader`.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hmb.protocol.errors import KafkaError
from hmb.records import RecordBatch
from hmb.storage.config import LogConfig
from hmb.storage.producer_state import ProducerState, snapshots
from hmb.storage.recovery import NO_STOP, Stopped
from hmb.storage.segment import Recovered, Segment
from hmb.storage.swap import finish_swaps
from hmb.storage.transaction_index import AbortedTransaction

LOGGER = logging.getLogger(__name__)
SEGMENT_NAME = re.compile(r"([0-9]{20})\.log")
MAX_OFFSET = 2**63 - 1


@dataclass(slots=True)
class LoadedLog:
    segments: list[Segment]
    end_offset: int
    producers: ProducerState


def load(
    directory: Path,
    config: LogConfig,
    *,
    recovery_point: int | None,
    clean: bool,
    now: int,
    stop: threading.Event = NO_STOP,
) -> LoadedLog:
    """Open the log in `directory`; an empty directory is an empty log. Raises OSError, and Stopped if `stop` is set.

    Records at offsets below `recovery_point` have been synced (None: unknown). `now` is the time of the start in ms.
    """
    swapped = finish_swaps(directory, config)
    base_offsets = _base_offsets(directory) or [recovery_point or 0]
    segments = [Segment(directory, base_offset, config) for base_offset in base_offsets]
    for segment in segments:
        segment.lacks_transactions = segment.base_offset in swapped
    loading = _Loading(segments, config, recovery_point, clean, stop)
    loading.run()
    producers = _load_producers(directory, segments, loading.end_offset, ProducerState(now))
    for segment in segments:
        segment.release()
    return LoadedLog(segments, loading.end_offset, producers)


def _base_offsets(directory: Path) -> list[int]:
    found = []
    for path in directory.glob("*.log"):
        match = SEGMENT_NAME.fullmatch(path.name)
        if match is None or int(match[1]) > MAX_OFFSET:
            LOGGER.warning("%s is no segment (its name is not an offset in 20 digits): ignored", path)
        else:
            found.append(int(match[1]))
    return sorted(found)


class _Loading:
    """The segments of a log, being looked at one after the other."""

    def __init__(
        self,
        segments: list[Segment],
        config: LogConfig,
        recovery_point: int | None,
        clean: bool,
        stop: threading.Event,
    ) -> None:
        self.segments = segments
        self.end_offset = segments[0].base_offset
        self._config = config
        self._clean = clean
        self._stop = stop
        self._recovery_point = recovery_point
        self._synced = segments[-1].base_offset if recovery_point is None else recovery_point

    def run(self) -> None:
        for number, segment in enumerate(self.segments):
            if self._stop.is_set():
                raise Stopped
            following = self.segments[number + 1].base_offset if segment is not self.segments[-1] else None
            found = self._look_at(segment, following)
            self.end_offset = max(self.end_offset, found.end_offset)
            is_complete = following is not None and found.end_offset >= following
            if found.damage and found.end_offset >= self._synced and not is_complete:
                self._end_at(number, found.damage)
                break
            if found.damage:
                segment.damage_mark.touch()
                LOGGER.error("%s: it was whole once; the file is kept, reads go on behind it", found.damage)
            elif following is not None and self._is_gap(segment, found.end_offset, following):
                self._end_at(number, f"{segment.path} ends at offset {found.end_offset}, the next one is {following}")
                break
        if self.end_offset < self._synced:
            self._begin_anew()

    def _look_at(self, segment: Segment, following: int | None) -> Recovered:
        is_whole = self._clean or (following is not None and following <= (self._recovery_point or 0))
        if is_whole and not segment.damage_mark.exists():
            segment.lacks_transactions |= not segment.transaction_index.is_sane()
            try:
                return Recovered(segment.end_offset(), None)
            except KafkaError as error:
                LOGGER.info("%s: %s; checking all of it", segment.path, error.message)
        found = segment.recover(following, self._stop)
        if not found.damage:
            segment.damage_mark.unlink(missing_ok=True)
        return found

    def _is_gap(self, segment: Segment, end_offset: int, following: int) -> bool:
        """Report what does not fit; whether the log ends here."""
        if end_offset > following:
            LOGGER.error("%s overlaps the next segment: it ends at %d, not %d", segment.path, end_offset, following)
        if end_offset >= following or self._config.compacts:
            return False
        if not self._clean and self._recovery_point is not None and end_offset >= self._recovery_point:
            return True
        LOGGER.warning(
            "%s: offsets %d to %d are missing (a segment is lost, or the log was compacted); reads go on behind them",
            segment.path.parent, end_offset, following - 1,
        )  # fmt: skip
        return False

    def _end_at(self, number: int, damage: str) -> None:
        """Take off what is damaged and all that follows; keep it where it holds whole batches."""
        lost, later = self.segments[number], self.segments[number + 1 :]
        kept = []
        for segment in later:
            segment.size = 0
            if segment.end_of_whole_batches(self.end_offset) is not None:
                kept.append(segment.keep_rest())
        if kept or lost.end_of_whole_batches(self.end_offset) is not None:
            kept.insert(0, lost.keep_rest())
        lost.truncate()
        for segment in later:
            segment.delete()
        del self.segments[number + 1 :]
        if kept:
            LOGGER.error(
                "%s; the log ends at offset %d; what follows has whole batches and is kept in %s: "
                "hmb dump-log shows such a file under a segment's name; remove it when it is not needed",
                damage, self.end_offset, ", ".join(map(str, kept)),
            )  # fmt: skip
        else:
            LOGGER.warning("%s; cut, nothing whole follows; the log ends at offset %d", damage, self.end_offset)

    def _begin_anew(self) -> None:
        """Go on behind everything that was ever synced, in a new segment."""
        last = self.segments[-1]
        begin = max(self._synced, last.end_of_whole_batches(self.end_offset) or 0)
        LOGGER.error("%s: records from offset %d on are lost or damaged, which were on disk; the log goes on at %d",
                     last.path.parent, self.end_offset, begin)  # fmt: skip
        self.segments.append(Segment(last.path.parent, begin, self._config))
        self.end_offset = begin


def _load_producers(
    directory: Path, segments: Sequence[Segment], end_offset: int, state: ProducerState
) -> ProducerState:
    """Fill the empty `state` from the newest snapshot and the batches after it."""
    known_to = segments[0].base_offset
    wanted = next((segment.base_offset for segment in segments if segment.lacks_transactions), end_offset)
    for offset, path in reversed(snapshots(directory)):
        if offset > end_offset:
            path.unlink()  # it tells of batches that were cut off
        elif offset <= wanted and state.load_snapshot(path):
            known_to = offset
            break
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        next_offset = end_offset if following is None else following.base_offset
        if next_offset > known_to:
            aborted = list(_replay(state, segment, known_to))
            if segment.lacks_transactions:
                segment.replace_transactions(aborted)
    return state


def _replay(state: ProducerState, segment: Segment, from_offset: int) -> Iterator[AbortedTransaction]:
    """Note the batches of idempotent producers from an offset on."""
    positions = segment.producer_batches
    batches = segment.batches_from(from_offset, segment.size) if positions is None else segment.batches_at(positions)
    try:
        for position, batch in batches:
            if isinstance(batch, RecordBatch) and batch.producer_id >= 0 and batch.last_offset >= from_offset:
                whole = segment.whole(position, batch) if batch.is_control else batch
                assert isinstance(whole, RecordBatch)
                if aborted := state.replay(whole):
                    yield aborted
    except KafkaError as error:  # in a segment that was not checked
        LOGGER.error("%s: %s; producers that wrote behind it are not known", segment.path, error.message)
