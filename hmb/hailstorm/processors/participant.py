"""A participant runs one processor in all epochs of its topology.

Each start of the topology, for example after a crash, begins a new *epoch*. In each epoch, a participant makes
a new state machine for its processor. The *negotiator* leads all processors through the phases of an epoch.
This is what a participant does in each phase:
    Initialize      drop the old state machine; report which snapshots of the processor are in the snapshot store
                    (a spout also reports the offset at which it begins if it has no snapshot)
    SpoutsRewind    make a new state machine, restore the snapshot that the negotiator chose, and report "ready"
    later phases    pass each decision of the negotiator to the state machine

In the phase Initialize, at the beginning of an epoch, all processors register for this epoch. A processor that
starts after this phase cannot take part in the epoch. So it registers with epoch 0. The negotiator then treats the
processor as lost, and begins a new epoch.

In the Hailstorm paper, the negotiator removes the entries of all processors from ZooKeeper, as "a signal to
restart". Here, the negotiator writes a new epoch number into the registry instead. When a processor sees the
new number, it restarts. The epoch number also keeps old data out of the new epoch: a processor refuses tuples
of an older epoch, and the snapshot store refuses snapshots of an older epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.codec import decode
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.sinks import SinkMachine
from hmb.hailstorm.processors.spouts import SpoutMachine
from hmb.hailstorm.snapshots.store import SnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processor, Processors

Machine = SpoutMachine | BoltMachine | SinkMachine


class Participant:
    """Runs one processor in all epochs of its topology. Each start of the topology begins a new epoch.

    In each epoch, the participant makes a new state machine for the processor and restores its snapshot. If no
    snapshot exists, a spout begins at the offset that the function `first_offset` returns.
    """

    spout_machine: type[SpoutMachine] = SpoutMachine
    bolt_machine: type[BoltMachine] = BoltMachine
    sink_machine: type[SinkMachine] = SinkMachine

    def __init__(
        self,
        processors: Processors,
        processor: Processor,
        store: SnapshotStore,
        first_offset: Callable[[], int] = lambda: 0,
        address: tuple[str, int] | None = None,
    ) -> None:
        self.processor, self.name = processor, processor.name
        self.machine: Machine | None = None
        self._registration = Report(address=address)
        self._processors, self._store, self._first_offset = processors, store, first_offset

    @property
    def report(self) -> Report:
        """The report of the processor: the values that the processor publishes in the registry."""
        return self._registration if self.machine is None else self.machine.report

    def observe(self, master: MasterState) -> None:
        """React to a new master state: register, restore a snapshot, or inform the state machine.

        Raises SnapshotError if the snapshot cannot be loaded or does not match the outputs in a sink's database or
        topic. Raises UserCodeError if user code fails. Temporary errors such as OSError are raised unchanged.
        """
        if master.phase is MasterPhase.INITIALIZE:
            if master.epoch > self.report.epoch:
                self._register(master)
        elif master.epoch != self.report.epoch:
            return
        elif master.phase is MasterPhase.SPOUTS_REWIND:
            self._rewind(master)
        elif self.machine is not None:
            self.machine.observe(master)

    def leave(self) -> None:
        """Leave the present epoch: drop the state machine, and report epoch 0 ("no epoch").

        The negotiator of the topology reads this report, treats the processor as lost, and begins a new epoch.
        """
        self.close()
        self._registration = Report(address=self._registration.address)

    def close(self) -> None:
        """Drop the state machine of the present epoch. If the processor is a sink, first close the sink's target."""
        if isinstance(self.machine, SinkMachine):
            self.machine.close()
        self.machine = None

    def _register(self, master: MasterState) -> None:
        self.close()
        saved = self._store.clocks(self.name) if self.processor.saves else []
        start = self._first_offset() if self.processor.partition is not None else None
        address = self._registration.address
        self._registration = Report(master.epoch, master.number, address=address, saved=saved, start=start)

    def _rewind(self, master: MasterState) -> None:
        assert master.clock is not None
        machine = self._make()(self._processors, self.processor, master.epoch, master.clock)
        if master.snapshot is not None and self.processor.saves:
            machine.restore(decode(self._store.load(self.name, master.snapshot)))
            machine.report.stored = master.snapshot if master.snapshot == master.clock else None
        if isinstance(machine, SinkMachine):
            machine.open(master.snapshot)
        machine.report.address, machine.report.seen = self._registration.address, master.number
        machine.report.is_ready = True
        self.machine = machine

    def _make(self) -> type[Machine]:
        if isinstance(self.processor.node.runs, Spout):
            return self.spout_machine
        return self.bolt_machine if isinstance(self.processor.node.runs, Bolt) else self.sink_machine
