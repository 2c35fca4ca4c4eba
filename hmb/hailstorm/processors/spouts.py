"""The state machine of a spout: it makes tuples from the records of one partition, and pauses for snapshots.

A driver (a runner or the simulation) reads the spout's partition. It calls the spout's method `take` with the
records and the next offset to read.

Some offsets have no record. For example, a partition has records at offsets 0 and 1, and a transaction marker
at offset 2. The next offset to read is 3. The spout sends 3 as its low water mark: no tuples from smaller
offsets will follow. A snapshot at this moment also contains offset 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hmb.client import ConsumerRecord
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import TopologyError, UserCodeError
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import SaveRequest
from hmb.hailstorm.processors.emitter import Emitter
from hmb.hailstorm.processors.event_time import IDLE, NO_TIME, PartitionTimes
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processor, Processors


class SpoutMachine:
    """Runs the spout of one partition during one epoch. It makes tuples, and pauses for snapshots.

    A *dead letter* is a record for which the user's function `convert` raised an error.

    position       the next offset to read
    is_flowing     whether the spout may read records now; False while the spout is paused
    dead_letters   (record, error) for each dead letter that is not yet in the dead-letter topic
    dead_count     the number of dead letters since the topology's first start; replays are not counted
    late           (offset, event time) for each late record that is not yet logged
    """

    def __init__(self, processors: Processors, processor: Processor, epoch: int, start: Clock) -> None:
        assert isinstance(processor.node.runs, Spout) and processor.partition is not None
        self.spout, self.partition = processor.node.runs, processor.partition
        self.name, self.epoch = processor.name, epoch
        self.report = Report(epoch)
        self.save: SaveRequest | None = None
        self.position = start[self.partition]
        self.is_flowing = False
        self.dead_letters: list[tuple[ConsumerRecord, Exception]] = []
        self.dead_count = 0
        self.late: list[tuple[int, int]] = []
        self._times = PartitionTimes(self.spout.allowed_lateness)
        self._is_idle = False
        self._saves = processor.saves
        self._path = (processor.node.name,)
        self._emitter = Emitter(processors, processor, epoch)

    @property
    def outbox(self) -> list[tuple[str, Payloads]]:
        return self._emitter.outbox

    @property
    def sent(self) -> int:
        return self._emitter.sent

    @property
    def late_count(self) -> int:
        """The number of late records since the topology's first start."""
        return self._times.late

    def restore(self, value: Any) -> None:
        """From a snapshot, restore the newest event time and the counts of late records and dead letters."""
        self._times.newest, self._times.late, self.dead_count = SpoutSnapshot.from_value(value)

    def observe(self, master: MasterState) -> None:
        """Follow the negotiator's newest decision: read records, pause, or request a save of this spout's state.

        The negotiator decides when the topology takes a snapshot. `master` contains its newest decision in this epoch.
        """
        self.is_flowing = master.lets_spouts_flow
        self.report.position = None if self.is_flowing else self.position
        self.report.seen = master.number
        if master.phase is MasterPhase.SPOUTS_PAUSED_AT and self._saves:
            self.report.split, self.report.not_saved = master.clock, None
            if master.clock is not None and self.report.stored != master.clock:
                snapshot = SpoutSnapshot(self._times.newest, self._times.late, self.dead_count)
                self.save = SaveRequest(master.clock, snapshot)

    def saved(self, clock: Clock, error: str | None = None) -> None:
        """Write into the spout's report whether the snapshot at `clock` was saved. If not, `error` says why."""
        self.save = None
        if error is None:
            self.report.stored = clock
        else:
            self.report.not_saved = (clock, error)

    def take(self, records: Sequence[ConsumerRecord], next_offset: int) -> None:
        """Convert records to tuples, and send them to the next processors, with the low water mark `next_offset`.

        Raises UserCodeError if `event_time` raises an exception, or if `convert` raises one and the spout has no
        dead-letter topic. Raises TopologyError if `event_time` does not return a valid number.
        """
        tuples, offsets = self._converted(records)
        if self.spout.event_time is not None:
            tuples, offsets = self._in_time(tuples, offsets)
        if next_offset > self.position:
            self.position, self._is_idle = next_offset, False
            self._emit(tuples, offsets)

    def idle(self) -> None:
        """Report to the next processors that this partition has had no new records for some time.

        Bolts then close windows without waiting for this partition. The method does nothing if the partition is already
        idle, or if the spout has no event times.
        """
        if self.spout.event_time is not None and not self._is_idle:
            self._is_idle = True
            self._emit([], [])

    def _converted(self, records: Sequence[ConsumerRecord]) -> tuple[list[Any], list[int]]:
        """Return a list of tuples and a list of their offsets. Omit records for which `convert` returns None."""
        convert = self.spout.convert
        tuples: list[Any] = []
        try:
            for record in records:
                tuples.append(convert(record))
        except Exception as error:
            if self.spout.dead_letters is None:
                record = records[len(tuples)]
                origin = f"the record of {self.partition} at offset {record.offset}, {record.value!r:.100}"
                raise UserCodeError(self.name, "convert", origin, error) from error
            tuples = [self._convert_or_refuse(record) for record in records]
        offsets = [record.offset for record in records]
        if None in tuples:
            kept = [row for row, item in enumerate(tuples) if item is not None]
            return [tuples[row] for row in kept], [offsets[row] for row in kept]
        return tuples, offsets

    def _convert_or_refuse(self, record: ConsumerRecord) -> Any:
        """Return the tuple of a record. If `convert` raises, add the record to the dead letters, and return None."""
        try:
            return self.spout.convert(record)
        except Exception as error:  # noqa: BLE001  # `convert` can raise anything; the record becomes a dead letter.
            self.dead_letters.append((record, error))
            self.dead_count += 1
            return None

    def _in_time(self, tuples: list[Any], offsets: list[int]) -> tuple[list[Any], list[int]]:
        """Return the tuples that are not late, and their offsets.

        Raises TopologyError if `event_time` does not return a number, and UserCodeError if it raises an exception.
        """
        event_time = self.spout.event_time
        assert event_time is not None
        kept_tuples, kept_offsets = [], []
        for item, offset in zip(tuples, offsets, strict=True):
            try:
                time = event_time(item)
            except Exception as error:
                origin = f"the tuple {item!r:.100} of {self.partition} at offset {offset}"
                raise UserCodeError(self.name, "event_time", origin, error) from error
            if not isinstance(time, int | float) or not NO_TIME < time < IDLE:
                raise TopologyError(
                    f"{self.name}: event_time returned {time!r:.60} ({type(time).__name__}) for the record of "
                    f"{self.partition} at offset {offset}: it must return a number, the event time in ms since 1970"
                )
            if self._times.is_late(time):
                self.late.append((offset, time))
            else:
                kept_tuples.append(item)
                kept_offsets.append(offset)
        return kept_tuples, kept_offsets

    def _emit(self, tuples: list[Any], offsets: list[int]) -> None:
        times = {}
        if self.spout.event_time is not None:
            times = {self.partition: IDLE if self._is_idle else self._times.mark}
        mark = Clock({self.partition: self.position})
        self._emitter.emit(self._path, self.partition, mark, times, tuples, offsets)


class SpoutSnapshot(NamedTuple):
    """A spout's saved state: newest event time, number of late records, and number of conversion errors."""

    newest: int  # ms
    late: int
    dead: int

    def to_value(self) -> list[int]:
        return list(self)

    @classmethod
    def from_value(cls, value: list[int]) -> SpoutSnapshot:
        return cls(*[*value, 0][:3])  # Early development versions did not save the number of dead letters.
