"""Opening a log: which segments there are, where it ends, and what its producers did.

After a clean stop nothing is read but the tail behind the last index entry.  After a kill or a power cut, everything
from the recovery point on is checked batch by batch (length, CRC, growing offsets), because it may not have reached the
disk whole:

- In the last segment the log is cut after its last whole batch: what follows was never acked as synced, or is torn.
- In an older segment that is damage, not an unfinished write.  It is reported with its position, and the file is kept
  as it is; reads skip from the undamaged beginning to the next segment.

Indexes that are missing, padded or not a whole number of entries long are made again from the log, and the producers'
state is the newest snapshot plus the batches behind it.

Source: kafka-0.7-design (log recovery); Kafka's `LogLoader`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from hmb.protocol.errors import KafkaError
from hmb.records import RecordBatch
from hmb.storage.config import LogConfig
from hmb.storage.producer_state import ProducedBatch, ProducerState, snapshots
from hmb.storage.segment import Segment
from hmb.storage.swap import finish_swaps

LOGGER = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadedLog:
    segments: list[Segment]
    end_offset: int
    producers: ProducerState


def load(directory: Path, config: LogConfig, *, recovery_point: int, clean: bool) -> LoadedLog:
    """Open what `directory` holds; an empty log where it holds none.  Raises OSError."""
    finish_swaps(directory, config)
    base_offsets = sorted(int(path.stem) for path in directory.glob("*.log") if path.stem.isdigit())
    segments = [Segment(directory, base_offset, config) for base_offset in base_offsets or [0]]
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if not clean and (following is None or following.base_offset > recovery_point):
            _recover(segment, is_last=following is None)
        elif not (segment.offset_index.is_sane() and segment.time_index.is_sane()):
            segment.rebuild_indexes()
    end_offset = _end_offset(segments[-1])
    return LoadedLog(segments, end_offset, _load_producers(directory, segments, end_offset))


def _recover(segment: Segment, *, is_last: bool) -> None:
    damage = segment.recover()
    if damage is None:
        return
    if is_last:
        LOGGER.warning("%s: cut %d bytes", damage.message, segment.truncate())
    else:
        LOGGER.error("%s: records up to the end of this segment cannot be read; the file is kept", damage.message)


def _end_offset(active: Segment) -> int:
    try:
        return active.end_offset()
    except KafkaError:  # closed properly, they said, but the tail is no batch: somebody has been here
        _recover(active, is_last=True)
        return active.end_offset()


def _load_producers(directory: Path, segments: list[Segment], end_offset: int) -> ProducerState:
    state, known_to = ProducerState(), segments[0].base_offset
    for offset, path in reversed(snapshots(directory)):
        if offset > end_offset:
            path.unlink()  # it tells of batches that were cut off
        elif state.load_snapshot(path):
            known_to = offset
            break
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is None or following.base_offset > known_to:
            _replay(state, segment, known_to)
    return state


def _replay(state: ProducerState, segment: Segment, from_offset: int) -> None:
    """Note the batches of idempotent producers from an offset on."""
    start = segment.offset_index.lookup(from_offset).position
    for _, batch in segment.batches(start, segment.size):
        if (
            isinstance(batch, RecordBatch)
            and batch.producer_id >= 0
            and batch.last_offset >= from_offset
            and not batch.is_control
        ):
            produced = ProducedBatch(
                batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp
            )
            state.update(batch.producer_id, batch.producer_epoch, produced)
