"""Tests of Hailstorm with goldenscripts (tests/scripts/hailstorm): each script lists events, and prints their effects.

A script consists of these commands:

    produce WORD ... [to=PARTITION]    append records to a partition of the topic `words` (default: partition 0)
    negotiate                          let the negotiator read the reports, and take steps until it must wait
    watch [PROCESSOR ...]              show the negotiator's newest decision to these processors (default: all)
    settle                             repeat `negotiate` and `watch` until nothing changes
    start                              run the command `settle`, but print only the last line
    read SPOUT [COUNT]                 let a spout read COUNT records (default: all), and send their tuples
    deliver [SENDER RECEIVER]          deliver the tuples in one channel (default: in all channels, until all are empty)
    save [PROCESSOR ...]               let these processors (default: all) store the states that they must save
    wait SECONDS                       let time pass
    crash PROCESSOR | negotiator       delete everything in the memory of a process, and start the process again
    show                               print the content of each processor's memory
    store                              print the clocks of the snapshots in the store

The topology counts words: the spouts `words-0` and `words-1`, the bolt `count-0`, and two sinks. The sink `live-0`
writes each output at once. The sink `held-0` holds outputs back until their snapshot is complete. The grace period is
10 s.

A script prints each decision of the negotiator, each output of a sink, and each change in a processor's report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import encode
from hmb.hailstorm.errors import StaleEpochError
from hmb.hailstorm.master import MasterState, Report
from hmb.hailstorm.negotiator import Negotiator, NegotiatorSettings, RegistryView
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.participant import Participant
from hmb.hailstorm.processors.sinks import SinkMachine
from hmb.hailstorm.processors.spouts import SpoutMachine
from hmb.hailstorm.sink import HeldBackSink, Sink
from hmb.hailstorm.snapshots import MemorySnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processors, Topology
from tests.hailstorm.topologies import count_bolt, record, word_pair
from tests.scripts import goldenscript

SCRIPTS = Path(__file__).parents[1] / "scripts" / "hailstorm"
SETTINGS = NegotiatorSettings(grace_period=10, patience=60)
NEWS = {  # If one of these fields changes in a report, the script prints the new value with this text.
    "epoch": "registers in epoch {}",
    "is_ready": "is ready",
    "position": "is paused at offset {}",
    "split": "begins the snapshot at {}",
    "stored": "has stored its snapshot at {}",
}


class Session:
    """The topology that a script runs: the processors, the channels between them, and the negotiator (coordinator)."""

    def __init__(self) -> None:
        topology = Topology("counting")
        topology.spout("words", Spout("words", word_pair))
        topology.bolt("count", count_bolt(), after="words")
        topology.sink("live", Sink(lambda item: self.written.append(f"live-0 writes {_pair(item)}")), after="count")
        topology.sink("held", HeldBackSink(self._write_held), after="count")
        self.processors = Processors(topology, {"words": range(2)})
        self.store_of_snapshots = MemorySnapshotStore()
        self.logs: list[list[str]] = [[], []]
        self.now = 0.0
        self.written: list[str] = []  # what the sinks have written since the last command
        self.master: MasterState | None = None
        self.living: dict[str, Report] = {}
        self.channels: dict[tuple[str, str], deque[Payloads]] = {}
        self.negotiator = self._new_negotiator()
        self.participants = {name: self._new_participant(name) for name in self.processors.by_name}

    def execute(self, command: str, words: list[str], options: dict[str, str]) -> Iterator[str]:
        yield from getattr(self, command)(*words, **options)

    def produce(self, *words: str, to: str = "0") -> Iterator[str]:
        self.logs[int(to)] += words
        yield from ()

    def wait(self, seconds: str) -> Iterator[str]:
        self.now += float(seconds)
        yield from ()

    def negotiate(self) -> Iterator[str]:
        while (master := self.negotiator.step(RegistryView(self.living, self.now))) is not None:
            self.master = master
            completed = "" if master.completed is None else f", completed {master.completed}"
            yield f"negotiator: {master}{completed}"

    def watch(self, *names: str) -> Iterator[str]:
        for name in names or self.participants:
            participant, master = self.participants[name], self.master
            if master is not None and (participant.report.epoch, participant.report.seen) != (
                master.epoch, master.number
            ):
                participant.observe(master)
                yield from self._effects(name)

    def settle(self) -> Iterator[str]:
        while news := [*self.negotiate(), *self.watch()]:
            yield from news

    def start(self) -> Iterator[str]:
        yield list(self.settle())[-1]

    def read(self, name: str, count: str = "1000") -> Iterator[str]:
        machine = self.participants[name].machine
        assert isinstance(machine, SpoutMachine) and machine.is_flowing
        partition, first = machine.partition.partition, machine.position
        values = self.logs[partition][first : first + int(count)]
        found = [record("words", partition, first + number, value) for number, value in enumerate(values)]
        machine.take(found, first + len(found))
        yield f"{name} reads {' '.join(values)}"
        yield from self._effects(name)

    def deliver(self, *channel: str) -> Iterator[str]:
        chosen = [channel] if channel else list(self.channels)
        for sender, receiver in chosen:
            machine, queue = self.participants[receiver].machine, self.channels[sender, receiver]
            while queue and machine is not None:
                assert not isinstance(machine, SpoutMachine)
                machine.receive(queue.popleft())
                yield from self._effects(receiver)
        if not channel and any(self.channels.values()):
            yield from self.deliver()

    def save(self, *names: str) -> Iterator[str]:
        for name in names or self.participants:
            machine = self.participants[name].machine
            if machine is None or machine.save is None:
                continue
            clock, state = machine.save
            try:
                self.store_of_snapshots.save(machine.epoch, name, clock, encode(state.to_value()))
            except StaleEpochError:
                yield f"{name} is refused: its epoch has ended"
                continue
            machine.saved(clock)
            yield from self._effects(name)

    def crash(self, name: str) -> Iterator[str]:
        if name == "negotiator":
            self.negotiator = self._new_negotiator()
        else:
            self.participants[name] = self._new_participant(name)
            self.living.pop(name, None)
            for channel, queue in self.channels.items():
                if name in channel:
                    queue.clear()
        yield from ()

    def show(self) -> Iterator[str]:
        for name, participant in self.participants.items():
            match participant.machine:
                case SpoutMachine() as spout:
                    yield f"{name}: next offset {spout.position}, {'reads' if spout.is_flowing else 'is paused'}"
                case BoltMachine() as bolt if bolt.state.is_frozen:
                    yield f"{name}: A {_counts(bolt.state.a)}, B {_counts(bolt.state.b)}"
                case BoltMachine() as bolt if bolt.state.is_gathering:
                    yield f"{name}: A {_counts(bolt.state.a)}, not complete"
                case BoltMachine() as bolt:
                    yield f"{name}: {_counts(bolt.state.a)}"
                case SinkMachine() as sink:
                    yield f"{name}: wrote {sink.written}, holds {len(sink.held)} back"
                case None:
                    yield f"{name}: has just started"

    def store(self) -> Iterator[str]:
        for name in self.participants:
            clocks = self.store_of_snapshots.clocks(name)
            if clocks:
                yield f"{name}: {', '.join(map(str, sorted(clocks, key=str)))}"
        yield f"complete: {self.store_of_snapshots.completed()}"

    def _effects(self, name: str) -> Iterator[str]:
        """Send the tuples in the outbox of a processor, and yield the lines that the script prints.

        The lines contain the outputs of the sinks, and the changed fields in the report of the processor.
        """
        participant = self.participants[name]
        if participant.machine is not None:
            for receiver, payloads in participant.machine.outbox:
                self.channels.setdefault((name, receiver), deque()).append(payloads)
            participant.machine.outbox.clear()
        yield from self.written
        self.written.clear()
        before, after = self.living.get(name, Report()), participant.report
        for field, text in NEWS.items():
            value = getattr(after, field)
            if value != getattr(before, field) and value is not None and value is not False:
                yield f"{name} {text.format(value)}"
        self.living[name] = replace(after)

    def _write_held(self, items: Sequence[Any], clock: Clock) -> None:
        self.written.append(f"held-0 writes {' '.join(map(_pair, items))} up to {clock}")

    def _new_negotiator(self) -> Negotiator:
        return Negotiator(self.processors, self.store_of_snapshots, SETTINGS)

    def _new_participant(self, name: str) -> Participant:
        return Participant(self.processors, self.processors.by_name[name], self.store_of_snapshots)


def _pair(item: tuple[str, int]) -> str:
    return f"{item[0]}={item[1]}"


def _counts(state: dict[str, int] | None) -> str:
    return " ".join(map(_pair, sorted((state or {}).items()))) or "empty"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_script_prints_its_expected_output(path: Path) -> None:
    assert goldenscript.run(path, Session().execute) == path.read_text(encoding="utf-8")


def test_there_are_scripts() -> None:
    assert list(SCRIPTS.glob("*.txt"))
