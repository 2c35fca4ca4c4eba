"""A member of a KIP-848 group, and how it gets from the partitions that it has to those that it is to have.

There is no barrier at which all members stop.  The group's *target* assignment says what each is to own in the end, and
every member goes there by itself, heartbeat by heartbeat: it gives up what it is not to have, and takes over what the
others have given up.  A partition is never owned twice, because it is free only when its owner has said that it has let
go of it::

    Stable                 it has what it is to have, as far as it knows
    UnrevokedPartitions    it was told to give up partitions and still has some: until then it stays in its epoch
    UnreleasedPartitions   it is in the target's epoch, and waits for partitions that other members still have

         target changes:           nothing to give up ----------> Stable, or UnreleasedPartitions
         Stable ------------------ something to give up --------> UnrevokedPartitions
         UnrevokedPartitions ----- all of it is gone -----------> Stable, or UnreleasedPartitions
         UnreleasedPartitions ---- the last one is free --------> Stable

The *member epoch* is the epoch of the target that the member has reached.  A heartbeat with an older one comes from a
member that has missed something, and is fenced; but with the one just before, and nothing owned that it should not, it
comes from a member that has only missed the last answer.

Source: KIP-848, KIP-1251; Kafka's `ConsumerGroupMember` and `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from sys import getsizeof
from uuid import UUID

from hmb.coordinator.cluster_topics import PartitionId
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

LEFT_FOR_A_WHILE = -2  # the epoch of a static member that will be back
Owned = Mapping[PartitionId, int]  # each with the epoch in which it was assigned


class MemberState(IntEnum):
    """By the numbers that are in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to get, and what stands in the way."""

    epoch: int  # of the target assignment
    target: frozenset[PartitionId]
    read: frozenset[UUID]  # the topics that the member reads now
    is_taken: Callable[[PartitionId], bool]  # by some member, this one included
    subscription_changed: bool = False  # by the request at hand


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member, as of one moment."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1  # ms
    topics: frozenset[str] = frozenset()  # that it subscribes to by name
    regex: str = ""  # "": none
    assignor: str | None = None  # that it prefers
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)  # what it was told to give up

    def told(self, request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str) -> ConsumerMember:
        """With what a request says; what it leaves null is as it was."""
        names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
        timeout = request.rebalance_timeout_ms
        return replace(
            self,
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client_id,
            client_host=client_host,
            rebalance_timeout=self.rebalance_timeout if timeout == -1 else timeout,
            topics=self.topics if names is None else frozenset(names),
            regex=self.regex if regex is None else regex,
            assignor=self.assignor if request.server_assignor is None else request.server_assignor,
        )

    def check_epoch(self, epoch: int, owned: frozenset[PartitionId] | None) -> None:
        """Raises FENCED_MEMBER_EPOCH where this is not the epoch of the member, nor an answer of ours was lost."""
        if epoch in (0, self.epoch):
            return
        if epoch > self.epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
                f"coordinator ({self.epoch}). The member must abandon all its partitions and rejoin.",
            )
        if epoch != self.previous_epoch or owned is None or not owned <= self.assigned.keys():
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the group "
                f"coordinator ({self.epoch}). The member must abandon all its partitions and rejoin.",
            )

    def assignment_epoch(self, partition: PartitionId) -> int | None:
        """In which epoch it got the partition; None where it has not."""
        return self.assigned.get(partition, self.revoking.get(partition))

    def gone_for_a_while(self) -> ConsumerMember:
        """A static member that leaves and will be back: its partitions wait for it."""
        return replace(self, epoch=LEFT_FOR_A_WHILE, revoking={}, assigned=dict.fromkeys(self.assigned, 0))

    def reconciled(self, goal: Goal, owned: frozenset[PartitionId] | None) -> ConsumerMember:
        """One step towards the goal, if one can be taken; `owned` is what the member says to have, None: as before."""
        match self.state:
            case MemberState.STABLE if self.epoch == goal.epoch:
                return self._without_unread(goal, owned) if goal.subscription_changed else self
            case MemberState.UNREVOKED_PARTITIONS if _owns(self.revoking, owned):
                return self._without_unread(goal, owned) if goal.subscription_changed else self
        return self._next(goal, owned)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def _next(self, goal: Goal, owned: frozenset[PartitionId] | None) -> ConsumerMember:
        target = {partition for partition in goal.target if partition.topic_id in goal.read}
        kept = {partition: epoch for partition, epoch in self.assigned.items() if partition in target}
        revoking = {partition: epoch for partition, epoch in self.assigned.items() if partition not in target}
        if revoking and _owns(revoking, owned):
            return self._moved(MemberState.UNREVOKED_PARTITIONS, self.epoch, kept, revoking)
        missing = target - kept.keys()
        free = {each for each in missing if each in self.revoking or not goal.is_taken(each)}
        state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_PARTITIONS
        return self._moved(state, goal.epoch, {**kept, **dict.fromkeys(free, goal.epoch)}, {})

    def _without_unread(self, goal: Goal, owned: frozenset[PartitionId] | None) -> ConsumerMember:
        """Topics that it does not read any more are given up at once, whatever the target says."""
        unread = {partition: epoch for partition, epoch in self.assigned.items() if partition.topic_id not in goal.read}
        if not unread:
            return self
        kept = {partition: epoch for partition, epoch in self.assigned.items() if partition not in unread}
        revoking = {**self.revoking, **unread}
        if _owns(revoking, owned):
            return self._moved(MemberState.UNREVOKED_PARTITIONS, self.epoch, kept, revoking)
        return self._moved(self.state, self.epoch, kept, self.revoking)

    def _moved(self, state: MemberState, epoch: int, assigned: Owned, revoking: Owned) -> ConsumerMember:
        return replace(self, state=state, epoch=epoch, previous_epoch=self.epoch, assigned=assigned, revoking=revoking)


def subscription_size(topics: Iterable[str], regex: str | None) -> int:
    """Return the memory, in bytes, that a subscription takes."""
    return sum(map(getsizeof, topics)) + len(regex or "")


def _owns(revoking: Owned, owned: frozenset[PartitionId] | None) -> bool:
    """Whether the member still has something that it is to give up; while it does not say, it has."""
    return owned is None or not owned.isdisjoint(revoking)
