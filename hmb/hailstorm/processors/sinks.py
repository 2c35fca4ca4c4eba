"""Runs a sink: the sink writes each tuple immediately, or when a complete snapshot includes the tuple.

Like a bolt, a sink saves snapshots. Each snapshot contains the outputs that the sink has not written yet, and
one offset for each partition. The sink has written all outputs of records below these offsets.

For example, a snapshot covers offsets 0 to 9 of a partition. If the sink has written the outputs of offsets 0
to 4, its snapshot contains the outputs of 5 to 9, and the next offset to write: 5.

A sink that writes each output on arrival still saves empty snapshots. The snapshot store adds the spouts'
offsets to each snapshot, so even a topology without bolts can restart at these offsets.

A sink can hold outputs back until a *complete* snapshot includes them. A snapshot is complete when all
processors have saved their states. After a crash, the topology starts from a complete snapshot. The sink can
immediately write the outputs that this snapshot contains, because no processor sends them again.

A transactional sink stores its outputs in its *target*, for example a database. In the same transaction, it
stores a clock K, which contains an offset for each partition. The target contains all outputs from records
below these offsets. When the sink starts from a snapshot with clock C, it compares the two offsets of each
partition:
    K below C     The snapshot was complete, but the sink stopped before it had written the outputs between K
                  and C. The sink now writes these outputs.
    K equal to C  The target contains all outputs below C. The sink writes nothing.
    K above C     The snapshot is older than the target, because a snapshot store was lost or replaced. The
                  sink refuses to start.

Epoch numbers cannot show whether the target or the snapshot is newer, because each new snapshot store begins
again with epoch 1.

A target can lose outputs, for example because a user deleted its file. So the sink compares K, the offset in
the target, with the next offset to write, which the snapshot contains. If K is missing or lower, the sink
refuses to start. For example, a snapshot of offsets 0 to 19 contains the outputs of 10 to 19, and the next
offset to write: 10. If K is 6, the target has lost the outputs of 6 to 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import HailstormError, SnapshotError, UserCodeError, can_pass
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import SaveRequest
from hmb.hailstorm.processors.held_outputs import HeldOutputs
from hmb.hailstorm.processors.low_water_marks import LowWaterMarks
from hmb.hailstorm.sink import HeldBackSink, IdempotentSink, Sink, Target, TransactionalSink
from hmb.hailstorm.topology import Processor, Processors


class SinkSnapshot(NamedTuple):
    """The state that a sink saves in a snapshot.

    `held` contains the outputs that the sink has received, but has not written yet. All of them come from records
    in the snapshot.

    `written` contains one offset for each partition. The sink has already written the outputs of all records below
    these offsets. `written` is None before the first complete snapshot. It is always None if the sink writes each
    output on arrival.
    """

    held: HeldOutputs
    written: Clock | None

    def to_value(self) -> Any:
        """Return the state as a value that the codec can encode."""
        return [*self.held.to_value(), None if self.written is None else self.written.to_value()]

    @classmethod
    def from_value(cls, value: Any) -> SinkSnapshot:
        # Early development versions of HMB saved only the first four values. They did not save the field `written`.
        written = value[4] if len(value) > 4 else None
        return cls(HeldOutputs.from_value(value[:4]), None if written is None else Clock.from_value(written))


class SinkMachine:
    """Runs one instance of a sink during one epoch: it writes outputs, or holds them back until a snapshot is complete.

    At the start of the epoch, `restore` loads the outputs that a snapshot contains. After that, `open` opens the
    target, for example a database, and writes these outputs.
    """

    def __init__(self, processors: Processors, processor: Processor, epoch: int, start: Clock) -> None:
        assert isinstance(processor.node.runs, Sink | IdempotentSink | HeldBackSink | TransactionalSink)
        self.sink = processor.node.runs
        self.name, self.epoch = processor.name, epoch
        self.report = Report(epoch)
        self.save: SaveRequest | None = None
        self.outbox: list[tuple[str, Payloads]] = []  # always empty, because a sink sends no tuples
        self.marks = LowWaterMarks(processors.upstreams[processor.name], start)
        self.held = HeldOutputs()
        self.received = self.refused = self.written = 0  # numbers of tuples
        self._topology, self._start = processors.topology.name, start
        self._target: Target | None = None
        self._completed: Clock | None = None
        self._desired: Clock | None = None
        self._is_saving = False

    def restore(self, value: Any) -> None:
        """Restore the unwritten outputs that the snapshot `value` contains."""
        self.held, self._completed = SinkSnapshot.from_value(value)

    def open(self, snapshot: Clock | None) -> None:
        """Open the target, and write the outputs that the sink has restored from a snapshot.

        The argument `snapshot` is the snapshot's clock, or None if no snapshot exists. Raises SnapshotError if the
        target has lost outputs, or contains outputs newer than the snapshot.

        Raises UserCodeError if user code fails. A temporary exception, for example OSError, is raised unchanged.
        """
        if isinstance(self.sink, TransactionalSink):
            with self._named_errors("target", lambda: "the start of the sink"):
                self._target = self.sink.target()
                reached = self._target.open(self._topology, self.name, self._start)
            self._check_not_behind(reached)
            if reached is not None:
                self._check_not_ahead(reached)
                self.held = self.held.after(reached)
            self._completed = reached
        if snapshot is not None:
            self._write_up_to(snapshot)

    def observe(self, master: MasterState) -> None:
        """Obey `master`, the newest command of the negotiator: write outputs, or begin a snapshot.

        `master.completed` contains one offset for each partition, or is None. The newest complete snapshot includes all
        records below these offsets. The sink writes the outputs of these records.

        In the phase SPOUTS_PAUSED_AT, the sink begins a new snapshot.
        """
        if master.completed is not None:
            self._write_up_to(master.completed)
        self.report.seen = master.number
        if master.phase is MasterPhase.SPOUTS_PAUSED_AT:
            self.report.split = self._desired = master.clock
            self.report.not_saved = None
            self._save_if_eligible()

    def receive(self, payloads: Payloads) -> None:
        """Write tuples at once, or keep them until a complete snapshot includes them.

        A `Sink` or an `IdempotentSink` writes each tuple at once. The other kinds of sinks keep the tuples in memory
        first.

        Raises UserCodeError if the user's function `write` raises an exception that is not temporary. A temporary
        exception, for example OSError, is raised unchanged.
        """
        if payloads.epoch != self.epoch:
            self.refused += len(payloads)
            return
        self.received += len(payloads)
        if isinstance(self.sink, Sink | IdempotentSink):
            self._write_at_once(payloads)
        else:
            self.held.add(payloads)
        self.marks.advance(payloads)
        self._save_if_eligible()

    def saved(self, clock: Clock, error: str | None = None) -> None:
        """Report the result of a save, and begin the next save if possible. `error` is None if the save succeeded."""
        self._is_saving, self.save = False, None
        if error is None:
            self.report.stored = clock
        else:
            self.report.not_saved = (clock, error)
        self._save_if_eligible()

    def close(self) -> None:
        """Close the target."""
        if self._target is not None:
            self._target.close()
            self._target = None

    def _write_at_once(self, payloads: Payloads) -> None:
        begin = self.written

        def origin() -> str:
            row = self.written - begin
            return f"{payloads.tuples[row]!r:.100} from {payloads.partition} at offset {payloads.offsets[row]}"

        with self._named_errors("write", origin):
            if isinstance(self.sink, Sink):
                for item in payloads.tuples:
                    self.sink.write(item)
                    self.written += 1
            elif isinstance(self.sink, IdempotentSink):
                for name, item in zip(payloads.ids(), payloads.tuples, strict=True):
                    self.sink.write(name, item)
                    self.written += 1

    def _save_if_eligible(self) -> None:
        """Begin to save the requested snapshot, unless outputs are missing or an older save is in progress.

        A snapshot has one offset for each partition. The outputs of all records below these offsets must arrive
        before the save begins.
        """
        clock = self._desired
        if clock is None or self._is_saving or not self.marks.clock.has_reached(clock):
            return
        self._desired = None
        if clock != self.report.stored:
            self._is_saving, self.save = True, SaveRequest(clock, SinkSnapshot(self.held.up_to(clock), self._completed))

    def _write_up_to(self, clock: Clock) -> None:
        """Write the waiting outputs that belong to a complete snapshot.

        `clock` contains one offset for each partition. The snapshot covers the records below these offsets. After the
        call, `held` contains only the outputs of later records.
        """
        if clock == self._completed or isinstance(self.sink, Sink | IdempotentSink):
            return
        outputs = self.held.up_to(clock)
        with self._named_errors("write", lambda: f"{len(outputs)} outputs up to {clock}"):
            if self._target is not None:
                self._target.write(outputs.tuples, clock)
            elif len(outputs) and isinstance(self.sink, HeldBackSink):
                self.sink.write(outputs.tuples, clock)
        self.written += len(outputs)
        self.held = self.held.after(clock)
        self._completed = clock

    def _check_not_ahead(self, reached: Clock) -> None:
        ahead = [p for p, offset in reached.items() if offset > self._start.get(p, 0)]
        if ahead:
            raise SnapshotError(
                f"{self.name}: the target has outputs up to {reached}, but the topology starts again at {self._start}. "
                f"The snapshot store was lost or replaced. Restore the snapshot store. {self._advice('delete')}"
            )

    def _check_not_behind(self, reached: Clock | None) -> None:
        """Raise SnapshotError if the target lacks outputs that were written before the restored snapshot."""
        written, found = self._completed or Clock(), reached or Clock()
        if any(offset > found.get(p, 0) for p, offset in written.items()):
            has = "no clock" if reached is None else f"outputs only up to {reached}"
            raise SnapshotError(
                f"{self.name}: the target has {has}, although this sink wrote outputs up to {written}. "
                "The outputs in the target or their clock were deleted or replaced. Restore the outputs and the clock. "
                f"{self._advice('use an empty snapshot store, and delete')}"
            )

    def _advice(self, steps: str) -> str:
        return (
            f"To compute everything again, {steps} the outputs in the target and their clock. In a database, the clock "
            f"is the row {self._topology}/{self.name} of the table hailstorm_clock. For a topic, the clock is the "
            f"group hailstorm-{self._topology}-{self.name}"
        )

    @contextmanager
    def _named_errors(self, function: str, origin: Callable[[], str]) -> Iterator[None]:
        """Raise UserCodeError if the user's code in the `with` block raises an exception that is not temporary."""
        try:
            yield
        except Exception as error:
            if isinstance(error, HailstormError) or can_pass(error):
                raise
            raise UserCodeError(self.name, function, origin(), error) from error
