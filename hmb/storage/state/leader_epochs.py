"""Leader epochs: which leader wrote which part of a log (KIP-101).

Each time a partition gets a new leader, its leader epoch grows by one. Every batch contains the leader epoch at the
time of its append. The file `leader-epoch-checkpoint` stores the offset at which each epoch began. Each line contains
an epoch and its start offset, for example:
    0 0          in epoch 0, the leader appended offsets 0 to 99
    2 100        in epoch 2, the leader appended offsets 100 to 249; in epoch 1, the leader appended no record
    5 250        epoch 5 is the current epoch

A leader epoch ends where the next epoch begins, and the newest epoch ends at the log's end. A consumer can ask at which
offset the epoch of its last record ended. If this offset is lower than the consumer's position, the log has lost
records that the consumer has read.

HMB's clusters have only one broker, which never loses its leadership. So logs that HMB has created stay in epoch 0.
Logs that a Kafka broker has created may have more epochs.

Source: KIP-101; KIP-320; Kafka's `LeaderEpochFileCache`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from hmb.protocol.enums import NO_LEADER_EPOCH


class EpochStart(NamedTuple):
    """A leader epoch, and the offset of its first record: one line of the file."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """A leader epoch, and its end offset: the start offset of the next epoch, or the log end offset."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The leader epochs of one log. Each log has at least one epoch.

    Immutable. Each epoch is greater than the epoch before it, and start offsets never decrease.
    """

    def __init__(self, starts: Sequence[tuple[int, int]] = ((0, 0),)) -> None:
        """Create the object from pairs `(epoch, start offset)`. Raises ValueError if their order is wrong."""
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
        """Return the epochs with records at or after the log start offset.

        In the result, the start offset of the first epoch is the log start offset, even if this epoch began earlier.
        """
        gone = bisect_right(self.starts, log_start_offset, key=lambda start: start.start_offset)
        return [EpochStart(start.epoch, log_start_offset) for start in self.starts[:gone][-1:]] + [*self.starts[gone:]]

    def at(self, offset: int) -> int:
        """Return the epoch to which `offset` belongs. An offset after the log's end belongs to the newest epoch."""
        number = bisect_right(self.starts, offset, key=lambda start: start.start_offset)
        return self.starts[max(0, number - 1)].epoch

    def end_of(self, epoch: int, log_start_offset: int, log_end_offset: int) -> EpochEnd | None:
        """Return the greatest epoch of the log that is at most `epoch`, and its end offset.

        Return None if `epoch` is greater than all epochs of the log.
        """
        if epoch == self.newest:
            return EpochEnd(epoch, log_end_offset)
        starts = self._since(log_start_offset)
        following = bisect_right(starts, epoch, key=lambda start: start.epoch)
        if epoch == NO_LEADER_EPOCH or following == len(starts):
            return None
        # `following` is the index of the first entry in `starts` whose epoch is greater than `epoch`. If `following` is
        # 0, all epochs in `starts` are greater than `epoch`. The method then returns `epoch` itself with the start
        # offset of the first entry, as Kafka does.
        found = starts[following - 1].epoch if following else epoch
        return EpochEnd(found, starts[following].start_offset)
