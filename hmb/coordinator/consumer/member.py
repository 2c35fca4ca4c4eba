"""A member of a KIP-848 group, and its steps from the current assignment to the target assignment.

The members of a KIP-848 group do not wait for each other at a barrier. The *target* assignment lists the partitions
that each member will own in the end. At each heartbeat, a member takes a step towards its target: it gives up
partitions that are not in its target, or it receives partitions that other members have given up.

A partition never has two owners in a KIP-848 group. The new owner receives a partition only after the old owner has
confirmed with a heartbeat that it no longer reads the partition.

The module states.py declares the states of a member of a KIP-848 group, and the table of their transitions.

Each target assignment has a number, its epoch. As soon as a member has given up all partitions that are not in a new
target, the member *enters* the epoch of this target: its *member epoch* becomes equal to this epoch.

For example, in epoch 4 member A owns the partitions {0, 1, 2}, and member B owns none. In the target assignment
of epoch 5, A owns {0, 1} and B owns {2}. The next lines show the heartbeats and the states of the members:
    B sends a heartbeat    B enters epoch 5, and waits for partition 2 (state UnreleasedPartitions)
    A sends a heartbeat    A stays in epoch 4; the response contains {0, 1} (state UnrevokedPartitions)
    A sends owned={0, 1}   A gives up partition 2, and enters epoch 5 (state Stable)
    B sends a heartbeat    B gets partition 2; the response contains {2} (state Stable)

A member sends its member epoch in each heartbeat. If the member epoch is too old, the coordinator rejects the
heartbeat, and the member must join the group again.

A response to a heartbeat can get lost. The member then does not know its new epoch, and its next heartbeat
contains its previous epoch.

A heartbeat with a member's previous epoch must list the partitions that the member owns. The coordinator
accepts it only if the member's current assignment contains all these partitions. No partition has two owners,
so no other member owns these partitions.

Source: KIP-848, KIP-1251; Kafka's `ConsumerGroupMember` and `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from hmb.coordinator.consumer.classic_metadata import ClassicMetadata
from hmb.coordinator.consumer.states import MEMBER_STATES, MemberEvent, MemberState
from hmb.coordinator.group import Commit
from hmb.coordinator.member_memory import subscription_size
from hmb.coordinator.modern.member_epoch import check_commit_version, check_fetch_epoch, fenced
from hmb.protocol.enums import STATIC_LEAVE_EPOCH, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.topics import PartitionId

Owned = Mapping[PartitionId, int]  # partition -> the epoch in which the member received it


class MemberTarget(NamedTuple):
    """The target assignment of a member, and the other facts that decide the member's next step."""

    epoch: int  # the epoch of the target assignment
    partitions: frozenset[PartitionId]  # the target assignment
    read: frozenset[UUID]  # the ids of the topics that the member reads now
    is_taken: Callable[[PartitionId], bool]  # returns whether any member owns the partition
    subscription_changed: bool = False  # whether the current request has changed the subscription


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """The state of one member. The object never changes: a change of the member creates a new object.

    - `assigned` contains the partitions that the member may read.
    - `revoking` contains the partitions that the member still owns but must give up.
    - No partition is in `assigned` and also in `revoking`.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1  # ms
    topics: frozenset[str] = frozenset()  # the topics that the member subscribes to by name
    regex: str = ""  # the regular expression of the subscription, or ""
    assignor: str | None = None  # the name of the assignor that the member prefers
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)  # partitions that the member must give up
    classic: ClassicMetadata | None = None  # set only if the member uses the classic protocol

    def updated(self, request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str) -> ConsumerMember:
        """Return a copy of the member with the values of a heartbeat. A null field of the request changes nothing.

        A member that sends this heartbeat uses the KIP-848 protocol from now on.
        """
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
            classic=None,
        )

    def session_timeout(self, usual: int) -> int:
        """Return the session timeout of the member in ms.

        The number `usual` is the session timeout of the group's KIP-848 members. A member that uses the classic
        protocol has sent its own session timeout.
        """
        return usual if self.classic is None else self.classic.session_timeout

    @property
    def size(self) -> int:
        """The approximate memory that the subscription and the protocols of the member use, in bytes."""
        return subscription_size(self.topics, self.regex) + (0 if self.classic is None else self.classic.size)

    def check_epoch(self, epoch: int, owned: frozenset[PartitionId] | None) -> None:
        """Check the epoch in a heartbeat.

        `owned` is the set of partitions in the heartbeat, or None if the heartbeat does not list partitions.

        Three epochs are valid:

        - 0: the member joins the group
        - the member's current epoch
        - the member's previous epoch, if `owned` is not None and all partitions in `owned` are assigned to the
          member. A member sends its previous epoch if it has missed the response with the current epoch.

        Raises FENCED_MEMBER_EPOCH for any other epoch.
        """
        if epoch in (0, self.epoch):
            return
        is_previous = epoch == self.previous_epoch and epoch < self.epoch
        if not is_previous or owned is None or not owned <= self.assigned.keys():
            raise fenced(GroupType.CONSUMER, epoch, self.epoch)

    def check_commit(self, commit: Commit) -> None:
        """Check that this member is allowed to commit these offsets.

        The commit contains an epoch. The current epoch of the member is allowed. An older epoch is allowed only if
        the member has owned all partitions of the commit since that epoch (KIP-1251).

        If the epoch is not allowed, this method raises an error. The error is ILLEGAL_GENERATION for a member that
        uses the classic protocol, and STALE_MEMBER_EPOCH for a member that uses the KIP-848 protocol.

        Old versions of OffsetCommit contain no epoch. If a member that uses the KIP-848 protocol sends one of these
        versions, this method raises UNSUPPORTED_VERSION.
        """
        if self.classic is None:
            check_commit_version(GroupType.CONSUMER, commit)
        if commit.epoch == self.epoch:
            return
        since = [
            self.assignment_epoch(PartitionId(offset.topic_id, partition.partition))
            for partition, offset in commit.offsets.items()
        ]
        if commit.epoch > self.epoch or any(assigned is None or commit.epoch < assigned for assigned in since):
            code = ErrorCode.STALE_MEMBER_EPOCH if self.classic is None else ErrorCode.ILLEGAL_GENERATION
            raise KafkaError(code, f"The member epoch is {self.epoch}, not {commit.epoch}.")

    def check_fetch(self, epoch: int) -> None:
        """Check the epoch in a fetch of committed offsets. Raises STALE_MEMBER_EPOCH, ILLEGAL_GENERATION."""
        if self.classic is not None:
            self.check_generation(epoch)
        else:
            check_fetch_epoch(epoch, self.epoch)

    def check_generation(self, generation: int) -> None:
        """Check the generation in a request of a member that uses the classic protocol. Raises ILLEGAL_GENERATION.

        Such a member receives its member epoch as the generation.
        """
        if generation != self.epoch:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION,
                f"The received generation id {generation} does not match the expected member epoch {self.epoch}.",
            )

    def assignment_epoch(self, partition: PartitionId) -> int | None:
        """Return the epoch in which the member received the partition, or None if the member does not own it."""
        return self.assigned.get(partition, self.revoking.get(partition))

    def temporarily_left(self) -> ConsumerMember:
        """Return a copy of a static member that leaves but will join again. The copy keeps the assigned partitions."""
        return replace(self, epoch=STATIC_LEAVE_EPOCH, revoking={}, assigned=dict.fromkeys(self.assigned, 0))

    def reconciled(self, target: MemberTarget, owned: frozenset[PartitionId] | None) -> ConsumerMember:
        """Return the member after one step towards `target`: it gives up or receives partitions.

        `owned` contains the partitions that the member owns. It is None if they have not changed.
        """
        match self.state:
            case MemberState.STABLE if self.epoch == target.epoch:
                return self._without_unread(target, owned) if target.subscription_changed else self
            case MemberState.UNREVOKED_PARTITIONS if _owns(self.revoking, owned):
                return self._without_unread(target, owned) if target.subscription_changed else self
        return self._next(target, owned)

    @property
    def revocation_timeout(self) -> int | None:
        """The time limit (ms) for giving up partitions, or None if the member has no partitions to give up.

        For a member that uses the classic protocol, the result is None, because other deadlines apply (deadlines.py).
        """
        must_revoke = self.state is MemberState.UNREVOKED_PARTITIONS and self.classic is None
        return self.rebalance_timeout if must_revoke else None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def _next(self, target: MemberTarget, owned: frozenset[PartitionId] | None) -> ConsumerMember:
        wanted = {partition for partition in target.partitions if partition.topic_id in target.read}
        kept = {partition: epoch for partition, epoch in self.assigned.items() if partition in wanted}
        revoking = {partition: epoch for partition, epoch in self.assigned.items() if partition not in wanted}
        if revoking and _owns(revoking, owned):
            return self._moved(self._after(MemberEvent.MUST_REVOKE), self.epoch, kept, revoking)
        missing = wanted - kept.keys()
        free = {each for each in missing if each in self.revoking or not target.is_taken(each)}
        event = MemberEvent.REACHES_TARGET if free == missing else MemberEvent.MUST_WAIT
        return self._moved(self._after(event), target.epoch, {**kept, **dict.fromkeys(free, target.epoch)}, {})

    def _without_unread(self, target: MemberTarget, owned: frozenset[PartitionId] | None) -> ConsumerMember:
        """Return the member without the assigned partitions of topics that the member no longer reads.

        The current request has changed the member's subscription. The target assignment may be older than this change,
        so it may still contain these partitions.
        """
        unread = {each: epoch for each, epoch in self.assigned.items() if each.topic_id not in target.read}
        if not unread:
            return self
        kept = {partition: epoch for partition, epoch in self.assigned.items() if partition not in unread}
        revoking = {**self.revoking, **unread}
        if _owns(revoking, owned):
            return self._moved(self._after(MemberEvent.MUST_REVOKE), self.epoch, kept, revoking)
        return self._moved(self.state, self.epoch, kept, self.revoking)

    def _after(self, event: MemberEvent) -> MemberState:
        return MEMBER_STATES.next(self.state, event)

    def _moved(self, state: MemberState, epoch: int, assigned: Owned, revoking: Owned) -> ConsumerMember:
        return replace(self, state=state, epoch=epoch, previous_epoch=self.epoch, assigned=assigned, revoking=revoking)


def _owns(revoking: Owned, owned: frozenset[PartitionId] | None) -> bool:
    """Return whether the member still owns at least one of the partitions that it must give up (`revoking`).

    `owned` contains the partitions in the heartbeat. If `owned` is None, the member's partitions have not changed since
    its previous heartbeat, so the member still owns all of them.
    """
    return owned is None or not owned.isdisjoint(revoking)
