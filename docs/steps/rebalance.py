"""The steps of a rebalance in both group protocols: a third member joins a group of two members.

This module runs HMB's coordinators without a broker. The coordinators are two state machines, `ClassicGroup`
and `ConsumerGroup`. They use no threads and read no clock, so each call passes the current time to them as a
number. The members of the groups are part of this module: they send the requests that the protocols require. In
the classic protocol, the group leader uses HMB's range assignor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from drawing import Drawing, Tone
from step_by_step import Step

from hmb.client.group.assignors import SubscribedMember, assign_range
from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import Call
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.cluster_topics import AssignableTopic
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.settings import ConsumerGroupSettings
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NAMES = ("ada", "bob", "eve")
PARTITIONS = 6
TOPIC = AssignableTopic("orders", UUID(int=1), PARTITIONS)
WIDTH, HEIGHT, ROW, CELL = 480, 270, 66, 30


class Row(NamedTuple):
    """One member's row in a drawing: the partitions that the member reads, its last message, and its epoch."""

    owned: list[int]
    message: str = ""
    epoch: str = ""


def draw(title: str, rows: dict[str, Row]) -> Drawing:
    """Draw the group's state, and one row for each member."""
    members = "; ".join(
        f"{name} reads {'partitions ' + ', '.join(map(str, row.owned)) if row.owned else 'nothing'}"
        + (f", {row.message}" if row.message else "")
        for name, row in rows.items()
    )
    drawing = Drawing(WIDTH, HEIGHT, f"Group: {title}. {members}.")
    drawing.box(8, 8, WIDTH - 16, 40, title, tone="amber")
    for number, (name, row) in enumerate(rows.items()):
        y = 66 + ROW * number
        tone: Tone = "violet" if row.message else "green"
        drawing.box(8, y, 62, 34, name, tone=tone)
        if row.epoch:
            drawing.text(39, y + 52, row.epoch, size=13)
        for partition in row.owned:
            drawing.box(80 + CELL * partition, y + 2, CELL - 3, 30, f"p{partition}", tone="green")
        if not row.owned:
            drawing.text(82, y + 22, "reads nothing", anchor="start", size=13)
        drawing.text(80, y + 52, row.message, anchor="start", size=13, tone="violet" if row.message else "plain")
    return drawing


class ClassicRun:
    """Simulates a classic group with three members, and stores a drawing of each step."""

    def __init__(self) -> None:
        self.group = ClassicGroup("kitchen", GroupSettings(6_000, 1_800_000, initial_delay=0, max_size=10), lambda: 0)
        self.ids: dict[str, str] = {}
        self.owned: dict[str, list[int]] = {name: [] for name in NAMES}
        self.generations: dict[str, int] = {}
        self.waiting: dict[str, str] = {}  # member -> the request whose response it waits for
        self.calls: dict[Call, str] = {}
        self.answered: dict[str, str] = {}
        self.made: list[Step] = []

    def show(self, caption: str) -> None:
        """Add a step that shows the present state of the group."""
        title = f"{self.group.state_name}, generation {self.group.state.generation}"
        rows = {}
        for name in NAMES:
            waits = f"{self.waiting[name]}: no response yet" if name in self.waiting else ""
            rows[name] = Row(list(self.owned[name]), self.answered.get(name, waits))
        self.made.append(Step(caption, draw(title, rows)))
        self.answered.clear()

    def join(self, name: str) -> None:
        """Send JoinGroup for the member `name`. The member first gives up its partitions (an eager rebalance)."""
        self.owned[name] = []
        call = Call(name, "/host", JoinGroupRequest.versions[-1])
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"orders")
        request = JoinGroupRequest(
            group_id="kitchen",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id=self.ids.get(name, ""),
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.calls[call], self.waiting[name] = name, "JoinGroup"
        self.group.join(call, request, 0)
        self.settle()

    def sync(self, name: str) -> None:
        """Send SyncGroup for the member `name`. The request of the leader contains the assignment of all members."""
        call, parts = Call(name), []
        if self.ids[name] == self.group.state.members.leader_id:
            members = [SubscribedMember(each, frozenset({TOPIC.name})) for each in self.generations]
            assigned = assign_range(members, {TOPIC.name: PARTITIONS})
            parts = [
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=self.ids[each], assignment=bytes(sorted(partition.partition for partition in owned))
                )
                for each, owned in assigned.items()
            ]
        request = SyncGroupRequest(
            group_id="kitchen", generation_id=self.generations[name], member_id=self.ids[name], assignments=parts
        )
        self.calls[call], self.waiting[name] = name, "SyncGroup"
        self.group.sync(call, request, 0)
        self.settle()

    def heartbeat(self, name: str) -> None:
        """Send a heartbeat for the member `name`. The next drawing shows the error code of the response."""
        request = HeartbeatRequest(group_id="kitchen", generation_id=self.generations[name], member_id=self.ids[name])
        try:
            self.group.heartbeat(request, 0)
            self.answered[name] = "Heartbeat: no error"
        except KafkaError as error:
            self.answered[name] = f"Heartbeat: {error.code.name}"

    def settle(self) -> None:
        """Pass the group's responses to its members. The group's writes succeed at once, without a disk."""
        self.group.tick(0)
        while self.group.writes or self.group.responses:
            responses, writes = self.group.responses.copy(), self.group.writes.copy()
            self.group.responses.clear()
            self.group.writes.clear()
            for call, answer in responses:
                self.receive(self.calls[call], answer)
            for write in writes:
                write.on_stored(None, 0)

    def receive(self, name: str, answer: JoinGroupResponse | SyncGroupResponse) -> None:
        """Store the member id, generation or partitions that a response assigns to the member `name`."""
        request = self.waiting.pop(name)
        self.answered[name] = f"{request}: {answer.error_code.name}" if answer.error_code else f"{request}: answered"
        if isinstance(answer, SyncGroupResponse):
            self.owned[name] = list(answer.assignment)
            return
        self.ids[name] = answer.member_id
        if not answer.error_code:
            self.generations[name] = answer.generation_id
            leads = answer.member_id == answer.leader
            self.answered[name] = f"{request}: generation {answer.generation_id}" + (", leader" if leads else "")


def classic() -> list[Step]:
    """Return the steps of a rebalance in the classic protocol.

    The group has two members, with the names ada and bob. A third consumer, with the name eve, joins the group.
    """
    run = ClassicRun()
    for name in ("ada", "bob", "ada"):  # The last request makes both of them members of one generation.
        run.join(name)
        if name not in run.generations:
            run.join(name)
    for name in ("bob", "ada"):
        run.sync(name)
    run.answered.clear()
    run.show("The group of ada and bob is stable. Each member reads three of the six partitions.")
    run.join("eve")
    run.show(
        "The consumer eve sends JoinGroup. The coordinator assigns it a member id in the response, and eve has to join "
        "again with this id."
    )
    run.join("eve")
    run.show(
        "Member eve sends JoinGroup with its id. The coordinator starts a rebalance. Its response to eve waits until "
        "all members have joined."
    )
    run.heartbeat("ada")
    run.show("Member ada sends its usual heartbeat. The error in the response means that ada has to join again.")
    run.join("ada")
    run.show("Member ada stops reading, gives up its partitions, and sends JoinGroup. Its response has to wait, too.")
    run.heartbeat("bob")
    run.join("bob")
    run.show(
        "Member bob, the last one, has also given up its partitions and joined. The coordinator answers all three with "
        "the new generation. No member reads now."
    )
    for name in ("eve", "bob"):
        run.sync(name)
    run.show(
        "Members eve and bob send SyncGroup. They wait for the assignment, which the leader of the group computes."
    )
    run.sync("ada")
    run.show(
        "The leader, ada, computes the assignment with the range assignor and sends it in SyncGroup. The coordinator "
        "answers all members. Each one reads two partitions."
    )
    return run.made


class ModernRun:
    """Simulates a group with the protocol of KIP-848, and stores a drawing of each step of the simulation.

    The group has three members.
    """

    def __init__(self) -> None:
        settings = ConsumerGroupSettings(45_000, 5_000, assignment_interval=0, max_size=10)
        self.group = ConsumerGroup("kitchen", lambda group_id: settings, Topics(), lambda: 1_000)
        self.owned: dict[str, set[int]] = {name: set() for name in NAMES}
        self.epochs: dict[str, int] = {}
        self.messages: dict[str, str] = {}
        self.made: list[Step] = []

    def show(self, caption: str) -> None:
        """Add a step that shows the present state of the group."""
        state = self.group.state
        title = f"{self.group.state_name}, group epoch {state.epoch}, assignment epoch {state.assignment_epoch}"
        rows = {
            name: Row(
                sorted(self.owned[name]),
                self.messages.get(name, ""),
                f"epoch {self.epochs[name]}" if name in self.epochs else "",
            )
            for name in NAMES
        }
        self.made.append(Step(caption, draw(title, rows)))
        self.messages.clear()

    def heartbeat(self, name: str) -> None:
        """Send a heartbeat for the member `name`.

        If the response contains an assignment, store the assigned partitions.
        """
        joins = name not in self.epochs
        owned = [ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=TOPIC.id, partitions=sorted(self.owned[name]))]
        request = ConsumerGroupHeartbeatRequest(
            group_id="kitchen",
            member_id=name,
            member_epoch=self.epochs.get(name, 0),
            rebalance_timeout_ms=300_000 if joins else -1,
            subscribed_topic_names=[TOPIC.name] if joins else None,
            topic_partitions=[] if joins else owned,
        )
        answer = self.group.heartbeat(request, name, "/host", 0)
        for write in self.group.writes:
            write.on_stored(None, 0)
        self.group.writes.clear()
        self.epochs[name] = answer.member_epoch
        self.messages[name] = "heartbeat: no change"
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            self.owned[name] = {number for topic in parts for number in topic.partitions}
            words = " ".join(f"p{number}" for number in sorted(self.owned[name]))
            self.messages[name] = f"heartbeat: assigned {words or 'nothing yet'}"


class Topics:
    """The list of topics from which the group computes its assignment. It contains only `orders`."""

    version = 1

    def names(self) -> Iterable[str]:
        return [TOPIC.name]

    def by_name(self, name: str) -> AssignableTopic | None:
        return TOPIC if name == TOPIC.name else None

    def by_id(self, id: UUID) -> AssignableTopic | None:
        return TOPIC if id == TOPIC.id else None


def modern() -> list[Step]:
    """Return the steps of a rebalance in the protocol of KIP-848."""
    run = ModernRun()
    for name in ("ada", "bob", "ada", "ada", "bob"):
        run.heartbeat(name)
    run.messages.clear()
    run.show("The group of ada and bob is stable. Both members are in the epoch of the assignment.")
    for name, caption in (
        (
            "eve",
            "Member eve joins with its first heartbeat. The coordinator increases the group epoch and computes a new "
            "target. All partitions are still taken, so eve has to wait. The others go on reading.",
        ),
        (
            "ada",
            "Member ada sends its usual heartbeat. The response contains its new assignment, without partition 2. "
            "Member ada gives up only this partition.",
        ),
        (
            "eve",
            "Member eve sends a heartbeat. The coordinator does not assign partition 2 to eve yet, because ada has not "
            "confirmed that it gave up this partition.",
        ),
        (
            "ada",
            "Member ada confirms with its next heartbeat that it has given up partition 2. The coordinator moves ada "
            "to the new epoch.",
        ),
        ("eve", "Member eve receives partition 2, which is free now. Members ada and bob have never stopped reading."),
        ("bob", "Member bob sends its usual heartbeat and learns that it has to give up partition 5."),
        ("bob", "Member bob confirms that it has given up partition 5, and moves to the new epoch."),
        ("eve", "Member eve receives partition 5. Every member has its target, so the group is stable again."),
    ):
        run.heartbeat(name)
        run.show(caption)
    return run.made
