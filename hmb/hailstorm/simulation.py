"""Simulates a whole topology, its crashes and its restarts in one thread, in a random but repeatable order of events.

Threads and networks deliver messages in an order that a test cannot control. But the code of Hailstorm that
processes tuples uses neither threads nor networks. So the simulation calls this code directly, and chooses
the order of all events with a seeded random generator.

Each processor and each channel between two processors has a random speed. Some of them can be much slower
than others.

The simulation runs spouts, bolts and sinks, which are called *processors*. It also runs the *negotiator*. The
negotiator decides, for example, when the processors save their states.

The negotiator writes each decision into the *registry*, and the processors read the decision there. Such a decision
is called a *master state*.

In each step of the simulation, a crash can happen: a processor or the negotiator loses everything it had in
memory, or the negotiator hangs. After that, the simulation selects one of these actions:
    deliver     a processor receives the oldest tuples of one channel (one channel can overtake another)
    read        a spout reads the next few records
    watch       a processor receives the next master state, or skips some states and receives the newest one
    save        a processor's state is stored; in a later step, the processor learns that the state is stored
    negotiate   the negotiator reads the processors' reports in the registry, and may write a new master state
    wake        a negotiator that hung continues for one step, although a new negotiator has replaced it

A new epoch begins when the topology starts again, for example after a crash. A processor that has not seen the
new epoch continues to work in the old epoch. In a real topology, this can happen after a processor has hung.
The processors of the new epoch must refuse payloads from the old epoch. The store must refuse snapshots from
the old epoch.

A run of the simulation depends only on the topology, the records and the seed. If a run fails, it therefore
fails again with the same seed. A run takes a few milliseconds. The function `hailstorm.check` runs the
simulation to find bolts whose results depend on the order of events. HMB's own tests run it to find errors in
Hailstorm.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hmb.client import ConsumerRecord
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import encode
from hmb.hailstorm.errors import StaleEpochError, TopologyError
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.negotiator import Negotiator, NegotiatorSettings, RegistryView
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import BoltMachine, SaveRequest
from hmb.hailstorm.processors.participant import Machine, Participant
from hmb.hailstorm.processors.spouts import SpoutMachine
from hmb.hailstorm.snapshots import MemorySnapshotStore
from hmb.hailstorm.topology import Processor, Processors, Topology

SECONDS_PER_STEP = 0.01
GRACE_PERIOD = 0.3  # seconds; 30 steps of the simulation
# With at most FEW_RECORDS records, the negotiator waits up to 30 simulated seconds for the processors in each phase.
# With more records, slow bolts take longer. The limit then grows in proportion to the number of records: for 120
# records, it is 60 s.
PATIENCE = 30.0
FEW_RECORDS = 60
MAX_STEPS = 200_000
# From a partition with fewer than 60 records, a spout reads at most this number of records in one step.
MAX_RECORDS_OF_STEP = 3
# In one step, a spout reads at most 1 / BATCHES of the records in a large partition (10 of 150). So a larger partition
# does not take many more steps. The limit is never below MAX_RECORDS_OF_STEP.
BATCHES = 15

SPEEDS = (1.0, 1.0, 0.3, 0.03)  # each channel and each processor gets one of these relative speeds at random

Action = Callable[[], None]
Partitions = Sequence[Sequence[ConsumerRecord]]  # the records of one topic, by partition


@dataclass
class Save:
    """A save that the simulation has begun.

    The first step of the save stores the state, and the second step notifies the processor.
    """

    participant: Participant
    machine: Machine  # the state machine whose state the simulation stores
    request: SaveRequest
    is_stored: bool = False


@dataclass
class Hung:
    """A negotiator that hung so long that its session with the registry ended. A new negotiator has replaced it."""

    negotiator: Negotiator
    # A negotiator that hangs reads no new reports from the processors. When it continues, it chooses its next step from
    # the old reports in `living`.
    #
    # Until the new negotiator takes its first step, `living` is None. Just before this step, the simulation copies the
    # reports of all running processors into `living`. Later reports do not change the copy.
    living: Mapping[str, Report] | None = None


@dataclass
class SimulationResult:
    """The result of a run of the simulation.

    states        bolt name -> the merged state of its instances
    windows       name of a bolt with windows -> window -> the last content of this window
    late          bolt name -> the number of tuples that came after all their windows were closed
    late_records  spout name -> the number of records that the spout left out because they were late
    """

    states: dict[str, Any]
    steps: int
    snapshots: int  # the number of complete snapshots
    crashes: int
    replayed: int  # the number of records that spouts read again
    refused: int  # the number of tuples that processors refused, because the tuples belong to an older epoch
    trace: list[str] = field(default_factory=list)
    windows: dict[str, dict[Any, Any]] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    late_records: dict[str, int] = field(default_factory=dict)


class Simulation:
    """One run of a topology over the given records.

    `records` maps each topic to a list of its partitions, and each partition is a list of records. In each
    step, a processor or the negotiator crashes with the probability `crash_rate`. After `crashes` crashes, the
    simulation causes no more.
    """

    negotiator_class: type[Negotiator] = Negotiator
    participant_class: type[Participant] = Participant

    def __init__(
        self,
        topology: Topology,
        records: Mapping[str, Partitions],
        seed: int,
        *,
        crashes: int = 0,
        crash_rate: float = 0.01,
    ) -> None:
        self.processors = Processors(topology, {name: range(len(logs)) for name, logs in records.items()})
        self.store = MemorySnapshotStore()
        self.now = 0.0  # seconds
        self.trace: list[str] = []
        self._records = records
        self._random = random.Random(seed)
        self._speeds: defaultdict[str, float] = defaultdict(lambda: self._random.choice(SPEEDS))
        self._crashes_left, self._crash_rate = crashes, crash_rate
        self._crashes = self._replayed = self._refused = self._snapshots = 0
        self._master: MasterState | None = None
        self._unseen: dict[str, deque[MasterState]] = {name: deque() for name in self.processors.by_name}
        self._living: dict[str, Report] = {}
        self._channels: dict[tuple[str, str], deque[Payloads]] = {}
        self._saves: list[Save] = []
        self._hung: Hung | None = None
        self._furthest: dict[str, int] = {}
        # Bolts remove old windows, but the simulation's result contains them. So keep them by processor and window.
        self._dropped: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self._participants = {name: self._new_participant(it) for name, it in self.processors.by_name.items()}
        self._negotiator = self._new_negotiator()

    def run(self) -> SimulationResult:
        """Run the topology. Raises TopologyError if the topology fails or takes more than MAX_STEPS steps."""
        for step in range(MAX_STEPS):
            self.now += SECONDS_PER_STEP
            if self._master is not None and self._master.phase is MasterPhase.ENDED:
                return self._finish(step)
            if self._crashes_left and self._random.random() < self._crash_rate:
                self._crash()
            names, actions = zip(*self._actions(), strict=True)
            (action,) = self._random.choices(actions, [self._speeds[name] for name in names])
            action()
        raise TopologyError(f"the simulation has not ended after {MAX_STEPS} steps; {self._state()}")

    # -- the possible actions

    def _actions(self) -> Iterator[tuple[str, Action]]:
        """Yield the name and the function of each action that is possible now.

        The dict `_speeds` maps each name to a speed. The simulation chooses fast actions more often than slow actions.
        """
        yield "negotiator", self._negotiate
        for (sender, receiver), queue in self._channels.items():
            if queue and self._participants[receiver].machine is not None:
                yield f"{sender} to {receiver}", partial(self._deliver, queue, receiver)
        for name, participant in self._participants.items():
            if self._unseen[name]:
                yield f"{name} watches", partial(self._watch, participant)
            machine = participant.machine
            if isinstance(machine, SpoutMachine) and machine.is_flowing and not machine.report.is_at_end:
                yield name, partial(self._read, participant)
        if self._hung is not None and self._hung.living is not None:
            yield "hung negotiator", self._return_from_hanging
        for save in self._saves:
            yield f"{save.participant.name} saves", partial(self._save, save)

    def _deliver(self, queue: deque[Payloads], receiver: str) -> None:
        participant = self._participants[receiver]
        machine = participant.machine
        assert machine is not None and not isinstance(machine, SpoutMachine)
        payloads = queue.popleft()
        machine.receive(payloads)
        self._note(f"{receiver} receives {len(payloads)} tuples of {payloads.partition} from {payloads.sender}")
        self._take_results(participant)

    def _read(self, participant: Participant) -> None:
        machine = participant.machine
        assert isinstance(machine, SpoutMachine)
        log = self._records[machine.partition.topic][machine.partition.partition]
        begin = bisect_left(log, machine.position, key=lambda record: record.offset)
        taken = log[begin : begin + self._random.randint(1, max(MAX_RECORDS_OF_STEP, len(log) // BATCHES))]
        if taken:
            furthest = self._furthest.get(machine.name, 0)
            self._replayed += sum(record.offset < furthest for record in taken)
            self._furthest[machine.name] = max(furthest, taken[-1].offset + 1)
            machine.take(taken, taken[-1].offset + 1)
            self._note(f"{machine.name} reads up to offset {machine.position}")
        else:
            machine.report.is_at_end = True
        self._take_results(participant)

    def _watch(self, participant: Participant) -> None:
        unseen = self._unseen[participant.name]
        master = unseen.popleft()
        if self._random.random() < 0.3:  # In a real registry, a watch may skip values and return only the newest value.
            while unseen:
                master = unseen.popleft()
        with self._dropped_windows_kept(participant):
            participant.observe(master)
        self._note(f"{participant.name} sees {master}")
        self._take_results(participant)

    def _save(self, save: Save) -> None:
        """Take one step of `save`: if the state is not stored yet, store it; otherwise notify the processor."""
        name, clock = save.participant.name, save.request.clock
        machine = save.machine
        if save.is_stored:
            self._saves.remove(save)
            if save.participant.machine is machine:
                with self._dropped_windows_kept(save.participant):
                    machine.saved(clock)
                self._take_results(save.participant)
            return
        save.is_stored = True
        try:
            self.store.save(machine.epoch, name, clock, encode(save.request.state.to_value()))
            self._note(f"{name} saves its state at {clock}")
        except StaleEpochError as error:
            self._note(str(error))
            self._saves.remove(save)
            # A newer epoch has begun. If the processor still uses the old epoch's state machine, restart the processor.
            if save.participant.machine is machine:
                self._lose(name)

    def _negotiate(self) -> None:
        if self._hung is not None and self._hung.living is None:
            self._hung.living = dict(self._living)
        master = self._negotiator.step(RegistryView(self._living, self.now))
        if master is not None:
            if master.completed is not None and (self._master is None or self._master.completed != master.completed):
                self.on_complete(master.completed)
            self._master = master
            for unseen in self._unseen.values():
                unseen.append(master)
            self._note(f"negotiator: {master}")

    def _return_from_hanging(self) -> None:
        """Let the old negotiator take one more step, and ignore its decision.

        The old negotiator did not react for a long time, so a new negotiator replaced it. The old negotiator still uses
        old reports of the processors. A real registry would refuse the decision, because the session of the old
        negotiator has ended. The simulation has no sessions, so this method ignores the decision.
        """
        hung, self._hung = self._hung, None
        assert hung is not None and hung.living is not None
        master = hung.negotiator.step(RegistryView(hung.living, self.now))
        self._note(f"hung negotiator: {master or 'the store'} is refused")

    def on_complete(self, clock: Clock) -> None:
        """Count a complete snapshot. Tests override this method to check the states in the snapshot."""
        self._snapshots += 1

    # -- crashes

    def _crash(self) -> None:
        self._crashes_left -= 1
        self._crashes += 1
        victim = self._random.choice(["negotiator", *self._participants])
        self._note(f"{victim} crashes")
        if victim == "negotiator":
            if self._random.random() < 0.5:
                self._hung = Hung(self._negotiator)
            self._negotiator = self._new_negotiator()
            return
        self._lose(victim)

    def _lose(self, victim: str) -> None:
        """Discard everything that a processor has in memory, and start the processor again."""
        self._saves = [save for save in self._saves if save.participant.name != victim]
        self._count_refused(self._participants[victim])
        self._participants[victim] = self._new_participant(self.processors.by_name[victim])
        self._unseen[victim].clear()
        if self._master is not None:
            self._unseen[victim].append(self._master)
        self._living.pop(victim, None)
        for (sender, receiver), queue in self._channels.items():
            if victim in (sender, receiver):
                queue.clear()

    def _new_participant(self, processor: Processor) -> Participant:
        return self.participant_class(self.processors, processor, self.store)

    def _new_negotiator(self) -> Negotiator:
        records = sum(len(log) for logs in self._records.values() for log in logs)
        patience = PATIENCE * max(1.0, records / FEW_RECORDS)
        return self.negotiator_class(self.processors, self.store, NegotiatorSettings(GRACE_PERIOD, patience))

    # -- results

    def _take_results(self, participant: Participant) -> None:
        """Send a processor's outputs, publish its report, and if necessary begin to save its state."""
        machine = participant.machine
        if machine is not None:
            for receiver, payloads in machine.outbox:
                self._channels.setdefault((machine.name, receiver), deque()).append(payloads)
            machine.outbox.clear()
            if machine.save is not None and all(save.request is not machine.save for save in self._saves):
                self._saves.append(Save(participant, machine, machine.save))
        self._living[participant.name] = replace(participant.report)

    @contextmanager
    def _dropped_windows_kept(self, participant: Participant) -> Iterator[None]:
        """Store each window that the processor removes from its state during the `with` block.

        A bolt removes a window from its state when the window is over. The result of the simulation must also contain
        the removed windows, so the method copies them into `_dropped`.
        """
        machine = participant.machine
        windows = machine.bolt.windows if isinstance(machine, BoltMachine) else None
        if windows is None:
            yield
            return
        assert isinstance(machine, BoltMachine)
        before = machine.state.a
        yield
        if participant.machine is machine and machine.state.a is not before:
            left = windows.by_window(machine.state.a)
            dropped = {window: each for window, each in windows.by_window(before).items() if window not in left}
            self._dropped[participant.name].update(dropped)

    def _finish(self, steps: int) -> SimulationResult:
        assert self._master is not None
        if self._master.error:
            raise TopologyError(self._master.error)
        result = SimulationResult(
            {}, steps, self._snapshots, self._crashes, self._replayed, 0, self.trace
        )
        for participant in self._participants.values():
            self._count_refused(participant)
            # A sink writes its last outputs only after it receives the negotiator's last decision.
            while self._unseen[participant.name]:
                self._watch(participant)
            machine = participant.machine
            if isinstance(machine, SpoutMachine):
                node = participant.processor.node.name
                result.late_records[node] = result.late_records.get(node, 0) + machine.late_count
            if isinstance(machine, BoltMachine):
                self._add_state(result, participant.processor.node.name, machine)
        result.refused = self._refused
        return result

    def _add_state(self, result: SimulationResult, node: str, machine: BoltMachine) -> None:
        """Merge the state of one instance of a bolt into the result of the run."""
        monoid, state, windows = machine.bolt.monoid, machine.state.merged(), machine.bolt.windows
        result.states[node] = monoid.merge(result.states.get(node, monoid.empty()), state)
        result.late[node] = result.late.get(node, 0) + machine.state.late
        if windows is not None:
            found = result.windows.setdefault(node, {})
            for window, content in {**self._dropped[machine.name], **windows.by_window(state)}.items():
                found[window] = windows.content.merge(found[window], content) if window in found else content

    def _count_refused(self, participant: Participant) -> None:
        self._refused += getattr(participant.machine, "refused", 0)

    def _note(self, what: str) -> None:
        self.trace.append(what)

    def _state(self) -> str:
        waits = self._negotiator.waits_for(RegistryView(self._living, self.now))
        return f"the master state is {self._master}, it waits for {', '.join(waits) or 'nobody'}"
