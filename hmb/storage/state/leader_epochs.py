"""Leader epochs: which leader wrote which part of a log (KIP-101).

Each time a partition gets a new leader, the leader epoch of the partition increases by one. Each batch contains
the epoch in which the leader appended it. The file `leader-epoch-checkpoint` stores the offset at which each
epoch began. Its first two lines are a version and the number of epochs. Each following line contains an epoch
and its start offset, for example:
    0 0          in epoch 0, the leader appended the offsets 0 to 99
    2 100        in epoch 2, the leader appended the offsets 100 to 249
    5 250        epoch 5 is the current epoch; in epochs 1, 3 and 4, no leader appended a record

A leader epoch ends where the next epoch begins. The newest epoch ends at the log end offset. A consumer can
therefore detect lost records. For example, the last record that it has read has offset 259 and epoch 2. The
consumer asks for the end offset of epoch 2. If the broker answers 250, the records at offsets 250 to 259 are
lost.

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
    """A leader epoch and the offset of its first record: one line of `leader-epoch-checkpoint`."""

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
                raise ValueError(
                    f"epoch {after.epoch} with start offset {after.start_offset} must not follow "
                    f"epoch {before.epoch} with start offset {before.start_offset}"
                )

    @property
    def newest(self) -> int:
        return self.starts[-1].epoch

    def _since(self, log_start_offset: int) -> Sequence[EpochStart]:
        """Return the epochs that have records at or after the log start offset.

        For example, epoch 0 begins at offset 0, and epoch 2 at offset 100. If the log start offset is 40, epoch 0 now
        begins at 40, and the result is `(0, 40)` and `(2, 100)`.
        """
        gone = bisect_right(self.starts, log_start_offset, key=lambda start: start.start_offset)
        return [EpochStart(start.epoch, log_start_offset) for start in self.starts[:gone][-1:]] + [*self.starts[gone:]]

    def at(self, offset: int) -> int:
        """Return the epoch to which `offset` belongs. An offset after the log's end belongs to the newest epoch."""
        number = bisect_right(self.starts, offset, key=lambda start: start.start_offset)
        return self.starts[max(0, number - 1)].epoch

    def end_of(self, epoch: int, log_start_offset: int, log_end_offset: int) -> EpochEnd | None:
        """Return `epoch` and its end offset. If the log lacks `epoch`, use the next smaller epoch.

        For example, epoch 2 begins at offset 100, and epoch 5 at offset 250. For epoch 3, the result is `(2, 250)`.

        If `epoch` is below all epochs, return it with the first epoch's start offset, as Kafka does. For epoch 1, this
        is `(1, 100)`.

        Return None if `epoch` is -1 or above all epochs.
        """
        if epoch == self.newest:
            return EpochEnd(epoch, log_end_offset)
        starts = self._since(log_start_offset)
        following = bisect_right(starts, epoch, key=lambda start: start.epoch)
        if epoch == NO_LEADER_EPOCH or following == len(starts):
            return None
        # `starts[following]` has the first epoch above `epoch`. If `following` is 0, all epochs are above `epoch`.
        found = starts[following - 1].epoch if following else epoch
        return EpochEnd(found, starts[following].start_offset)
