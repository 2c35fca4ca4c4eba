"""Leader epochs: which leader wrote which part of a log (KIP-101).

Each time a partition gets a leader, its leader epoch grows by one. Every batch contains the epoch in which it was
written. `leader-epoch-checkpoint` stores where each epoch began, in lines of `epoch start-offset`::

    0 0          epoch 0 wrote offsets 0 to 99
    2 100        epoch 2 wrote 100 to 249; epoch 1 wrote nothing
    5 250        epoch 5 writes now

An epoch ends where the next one begins, and the newest epoch ends at the log's end. A consumer that knows the epoch of
its last record asks where that epoch ended. If the end is before the consumer's position, records that it has read were
lost.

The only broker of a cluster never loses its leadership, so logs that it has created stay in epoch 0. Logs of a Kafka
broker may have more epochs.

Source: KIP-101; KIP-320; Kafka's `LeaderEpochFileCache`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from hmb.protocol.enums import NO_LEADER_EPOCH


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one log, at least one; immutable. Epochs grow, and start offsets do not fall."""

    def __init__(self, starts: Sequence[tuple[int, int]] = ((0, 0),)) -> None:
        """Raises ValueError."""
        self.starts = tuple(EpochStart(*start) for start in starts)
        if not self.starts:
            raise ValueError("no epoch")
        for before, after in zip(self.starts, self.starts[1:], strict=False):
            if after.epoch <= before.epoch or after.start_offset < before.start_offset:
                raise ValueError(f"{after.epoch} {after.start_offset} after {before.epoch} {before.start_offset}")

    @property
    def newest(self) -> int:
        return self.starts[-1].epoch

    def _since(self, log_start_offset: int) -> Sequence[EpochStart]:
        """Return the epochs that have records at or after the log start offset."""
        gone = bisect_right(self.starts, log_start_offset, key=lambda start: start.start_offset)
        return [EpochStart(start.epoch, log_start_offset) for start in self.starts[:gone][-1:]] + [*self.starts[gone:]]

    def at(self, offset: int) -> int:
        """Return the epoch that wrote this offset, or would write it."""
        number = bisect_right(self.starts, offset, key=lambda start: start.start_offset)
        return self.starts[max(0, number - 1)].epoch

    def end_of(self, epoch: int, log_start_offset: int, log_end_offset: int) -> EpochEnd | None:
        """Return the greatest epoch that is not above `epoch`, and its end; None if `epoch` is in the future."""
        if epoch == self.newest:
            return EpochEnd(epoch, log_end_offset)
        starts = self._since(log_start_offset)
        following = bisect_right(starts, epoch, key=lambda start: start.epoch)
        if epoch == NO_LEADER_EPOCH or following == len(starts):
            return None
        found = starts[following - 1].epoch if following else epoch  # older than all that is known
        return EpochEnd(found, starts[following].start_offset)
