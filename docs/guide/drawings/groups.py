"""The drawings of the chapter on consumer groups: two rebalances, and how the broker writes two commits to disk."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from drawing import Drawing, Tone, load
from sequence import Lane, Sequence
from tracing import Locals, Watched, add_calls, traced, wait_for_calls

import hmb
from hmb.broker.handlers import offset_commit
from hmb.broker.lifecycle import BrokerServer
from hmb.client import TopicPartition
from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.offset_manager import OffsetManager
from hmb.coordinator.offset_requests import OffsetRequests
from hmb.storage.log import Log

STEPS = Path(__file__).parents[2] / "steps" / "rebalance.py"
COORDINATOR = "coordinator"
COMMITTERS = ("ada", "bob")
ORDERS = TopicPartition("orders", 0)
# Only commits in the same partition can share one write. With one partition of `__consumer_offsets`, both groups in the
# drawing use the same partition.
SETTINGS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


def lanes_of_members() -> Sequence:
    members = [Lane(name, "green") for name in load_steps("NAMES")]
    return Sequence(*members, Lane(COORDINATOR, "amber"), gap=212)


def load_steps(name: str) -> Any:
    """Return the object `name` of the file `docs/steps/rebalance.py`, for example the class `ClassicRun`."""
    return load(STEPS, name)


def recorded_run() -> Any:
    """Return a simulation that can draw the messages between the members of a group and the coordinator.

    Set the field `sequence` of the simulation to an empty diagram. The simulation then adds each new message to
    this diagram. Without a diagram, it draws nothing.
    """
    run_class: Any = load_steps("ClassicRun")

    class RecordedRun(run_class):  # type: ignore[misc]

        def __init__(self) -> None:
            self.sequence: Sequence | None = None
            super().__init__()

        def send(self, name: str, text: str) -> None:
            if self.sequence is not None:
                self.sequence.message(name, COORDINATOR, text, tone="green")
                self.sequence.begin_wait(name)

        def answer(self, name: str, text: str) -> None:
            if self.sequence is not None:
                self.sequence.message(COORDINATOR, name, text, tone="amber", dashed=True)
                self.sequence.end_wait(name)

        def join(self, name: str) -> None:
            self.send(name, "JoinGroup" + ("" if name in self.ids else " without an id"))
            super().join(name)

        def sync(self, name: str) -> None:
            leads = self.ids[name] == self.group.state.members.leader_id
            self.send(name, "SyncGroup" + (" + assignment" if leads else ""))
            super().sync(name)

        def heartbeat(self, name: str) -> None:
            self.send(name, "Heartbeat")
            super().heartbeat(name)
            self.answer(name, self.answered[name].removeprefix("Heartbeat: "))

        def receive(self, name: str, answer: Any) -> None:
            super().receive(name, answer)
            owned = " ".join(f"p{number}" for number in self.owned[name])
            self.answer(name, owned or self.answered[name].removeprefix("JoinGroup: "))

        def state(self) -> None:
            if self.sequence is not None:
                self.sequence.note(COORDINATOR, self.group.state_name)

    return RecordedRun()


def classic() -> Drawing:
    """Draw the messages of a rebalance in Kafka's classic group protocol, when a third member joins a group of two."""
    run = recorded_run()
    for name in ("ada", "ada", "bob", "bob", "ada"):
        run.join(name)
    for name in ("bob", "ada"):
        run.sync(name)
    run.sequence = lanes_of_members()
    run.state()
    run.join("eve")
    run.join("eve")
    run.state()
    for name in ("ada", "bob"):
        run.heartbeat(name)
        run.join(name)
    run.state()
    for name in ("eve", "bob", "ada"):
        run.sync(name)
    run.state()
    drawing: Drawing = run.sequence.drawing("A rebalance in the classic protocol.")
    return drawing


def modern() -> Drawing:
    """Draw the messages of a rebalance in KIP-848's protocol, when a third member joins a group of two."""
    run_class: Any = load_steps("ModernRun")
    run = run_class()
    for name in ("ada", "bob", "ada", "ada", "bob"):
        run.heartbeat(name)
    sequence = lanes_of_members()
    epoch = 0
    for name in ("eve", "ada", "eve", "ada", "eve", "bob", "bob", "eve"):
        confirms = f"has {parts(run.owned[name])}" if name in run.epochs else "joins"
        sequence.message(name, COORDINATOR, f"heartbeat: {confirms}", tone="green")
        run.heartbeat(name)
        if run.group.state.epoch != epoch:
            epoch = run.group.state.epoch
            sequence.note(COORDINATOR, f"group epoch {epoch}: new target")
        news = run.messages[name].removeprefix("heartbeat: ")
        text = f"epoch {run.epochs[name]}: {news}"
        sequence.message(COORDINATOR, name, text, tone="amber", dashed=True)
    sequence.note(COORDINATOR, run.group.state_name)
    return sequence.drawing("A rebalance in the protocol of KIP-848.")


def parts(owned: set[int]) -> str:
    return " ".join(f"p{number}" for number in sorted(owned)) or "nothing"


def commit() -> Drawing:
    """Draw how a broker writes the commits of two groups with one append and one sync.

    The function runs a broker and records its calls. The drawing shows the recorded calls.
    """
    with traced(WATCHED) as events, BrokerServer(config=SETTINGS) as broker, ExitStack() as consumers:
        servers = broker.bootstrap_servers
        with hmb.Admin(servers) as admin:
            admin.create_topics([hmb.NewTopic("orders", 1)])
        members = {
            name: consumers.enter_context(hmb.Consumer(servers, "orders", group=name, client_id=name))
            for name in ("eve", *COMMITTERS)
        }
        for consumer in members.values():
            while not consumer.assignment:
                consumer.poll(0.05)
        events.clear()
        log = broker.context.topics.log_of(TopicPartition("__consumer_offsets", 0))
        threads = []
        # First, `eve` commits. While this thread holds the lock, the broker cannot write eve's commit. The later
        # commits of `ada` and `bob` therefore wait together for the next write.
        with log.lock:
            for count, consumer in enumerate(members.values(), 1):
                threads.append(threading.Thread(target=consumer.commit, args=({ORDERS: 40 + count},)))
                threads[-1].start()
                wait_for_calls(events, OffsetManager.begin_commit, count, ended=True)
                # Wait until eve's commit has left the queue. The broker must not write eve's commit together with
                # another one.
                wait_for_calls(events, Journal._append, 1)
        for thread in threads:
            thread.join()
        # Copy the recorded calls before the consumers close. Each consumer commits again when it closes, and the
        # drawing must not show this commit.
        found = list(events)
    of_eve = next(event.thread for event in found if event.lane == "eve's thread")
    names: list[tuple[str, Tone]] = [(f"{name}'s thread", "green") for name in COMMITTERS]
    names += [("group", "amber"), ("journal", "amber"), ("log", "amber"), ("memory", "amber")]
    sequence = Sequence(*(Lane(*name) for name in names), gap=150)
    add_calls(sequence, [event for event in found if event.thread != of_eve])
    return sequence.drawing("Two commits of two groups share one write and one sync.")


def of_client(variables: Locals) -> str:
    return f"{variables['context'].header.client_id}'s thread"


def of_journal(variables: Locals) -> str:
    return "log" if variables["self"].directory.name.startswith("__consumer_offsets") else ""


def new_offset(variables: Locals) -> str:
    (committed,) = variables["offsets"].values()
    return f"{variables['group_id']}: {committed.offset}"


WATCHED = [
    Watched(offset_commit.handle, of_client, "OffsetCommit"),
    Watched(OffsetRequests.begin_commit, "group", "begin_commit"),
    Watched(ClassicGroup.check_commit, "group", "check generation"),
    Watched(OffsetManager.begin_commit, "journal", "add to queue"),
    Watched(Journal.write, "journal", "write", reply="done", waits=True),
    Watched(Journal._append, "log", lambda variables: f"append {len(variables['together'])} commits", tone="amber"),
    Watched(Log.flush, of_journal, "sync", reply="on disk", tone="amber"),
    Watched(OffsetManager._commit, "memory", new_offset, tone="amber"),
]
