"""Leader epochs: which leader wrote which part of a log (KIP-101).

Each time a partition gets a leader, its leader epoch grows by one. Every batch contains the epoch in which it was
written. `leader-epoch-checkpoint` stores where each epoch began, in lines of `epoch start-offset`::

    0 0          epoch 0 wrote offsets 0 to 99
    2 100        epoch 2 wrote 100 to 249; epoch 1 wrote nothing
    5 250        epoch 5 writes now

An epoch ends where the next one begins, and the newest epoch ends at the log's end. A consumer can ask where the epoch
of its last record ended. If this end is lower than the consumer's position, the log has lost records that the consumer
has read.

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
    """The epochs of one log, at least one. Immutable. Epochs grow, and start offsets do not fall."""

    def __init__(self, starts: Sequence[tuple[int, int]] = ((0, 0),)) -> None:
        """Create the epochs from pairs of epoch and start offset. Raises ValueError if they do not grow."""
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
        """Return the epoch in which this offset was written, or would be written."""
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
        found = starts[following - 1].epoch if following else epoch  # The epoch is older than all epochs of the log.
        return EpochEnd(found, starts[following].start_offset)
