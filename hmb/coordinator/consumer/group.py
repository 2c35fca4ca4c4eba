"""One KIP-848 group: the broker assigns the partitions, and each member moves to its assignment step by step.

In a KIP-848 group, a member joins, stays and leaves with the same kind of request, the heartbeat. Each heartbeat
contains a member epoch. A positive epoch shows that the member is alive. The other epochs have special meanings: 0
means that the member joins, -1 means that it leaves, and -2 means that a static member leaves but will join again.
The group handles a heartbeat in three parts:
1. The group stores the subscription of the member. If the subscription or a subscribed topic has changed, the
   *group epoch* increases by 1 (subscriptions.py).
2. If the group epoch is greater than the *assignment epoch*, an assignor computes a new *target*: the
   partitions that each member will own (assignors.py). The assignment epoch then becomes equal to the group
   epoch. The group computes at most one target in each `group.consumer.assignment.interval.ms`.
3. The member takes one step towards its target. For example, it gives up a partition (member.py).

For example, the group epoch and the assignment epoch are 3, and member A reads both partitions of topic "weather".
Member B joins, so the group epoch becomes 4. It is now greater than the assignment epoch, so the assignor computes
a new target: partition 0 for A and partition 1 for B. The assignment epoch then becomes 4.

The group is a state machine that uses no threads or disks (`hmb/coordinator/group.py`). It only collects its
records in the list `writes`. The broker stores these records on disk, and then sends the response to the
heartbeat. The parameter `now` is a time in ms from a monotonic clock, which never goes back. The function
`clock` returns the time in ms since 1970.

Invariants:
- Each partition has at most one owner: the member whose mapping `assigned` or `revoking` contains the partition.
- The epoch of a member is never greater than the assignment epoch.
- The records of a group describe its state, except the deadlines. If all changes of a group are stored, the
  coordinator can restore an equal group from its records. The deadlines then start again.

During an online migration, some members of the group use the classic protocol. The folder `migration` handles their
requests, and calls `step` and `remove` of this class. When the last member with the KIP-848 protocol leaves, a classic
group can replace this group. The field `successor` then contains the classic group.

Source: KIP-848; Kafka's `GroupMetadataManager` (consumerGroup...).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from uuid import uuid4

from hmb.coordinator.cluster_topics import ClusterTopics, MayDescribe, everything
from hmb.coordinator.consumer.assignors import ASSIGNORS, UNIFORM, MemberToAssign
from hmb.coordinator.consumer.deadlines import ConsumerDeadlines
from hmb.coordinator.consumer.heartbeat import assignment_of, check_instance, is_full, owned_by
from hmb.coordinator.consumer.member import ConsumerMember, MemberTarget
from hmb.coordinator.consumer.settings import ConsumerGroupSettings
from hmb.coordinator.consumer.state import ConsumerState
from hmb.coordinator.consumer.subscriptions import Subscriptions
from hmb.coordinator.group import Commit, Group, unloaded
from hmb.coordinator.modern.group import LEAVES, ModernGroup
from hmb.protocol.enums import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.topics import PartitionId
from hmb.uuids import encode_uuid


def keep_protocol(group: ConsumerGroup, leaving: Collection[str], now: int) -> Group | None:
    """Return None instead of a classic group: the group keeps its protocol (`ConsumerGroup.__init__`)."""
    return None


class ConsumerGroup(ModernGroup[ConsumerState, ConsumerGroupSettings]):
    """A KIP-848 group, which handles the requests of its members.

    - `subscriptions` is an object that knows which topics the members read. If these topics change, the object
      increases the group epoch.
    - `successor` is usually None. A downgrade sets it to the classic group that will replace this group.
    """

    kind = GroupType.CONSUMER
    state_class = ConsumerState

    def __init__(
        self,
        group_id: str,
        settings: Callable[[str], ConsumerGroupSettings],
        topics: ClusterTopics,
        clock: Callable[[], int],
        downgraded: Callable[[ConsumerGroup, Collection[str], int], Group | None] = keep_protocol,
    ) -> None:
        """Create an empty KIP-848 group.

        The function `downgraded(group, leaving, now)` creates a classic group that replaces this group. The
        function returns None if a downgrade is not possible. A downgrade is possible only if all remaining members
        use the classic protocol.

        This group calls `downgraded` before it removes members. The argument `group` is this KIP-848 group.
        `leaving` contains the ids of the members to remove, and `now` is the current time (ms).
        """
        super().__init__(group_id, settings, topics, clock)
        self.deadlines: ConsumerDeadlines = ConsumerDeadlines()
        self._downgraded = downgraded
        self.subscriptions = Subscriptions(self.state, topics, clock)
        self._causes: list[str] = []  # why the group needs a new target; empty after the target is computed

    @property
    def settings(self) -> ConsumerGroupSettings:
        return self._settings(self.group_id)

    # -- ConsumerGroupHeartbeat

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client_id: str,
        client_host: str,
        now: int,
        may_describe: MayDescribe = everything,
    ) -> ConsumerGroupHeartbeatResponse:
        """Handle a heartbeat that `check_heartbeat` has accepted, and return the response.

        The group compares the members' regular expressions only with topics for which `may_describe(topic)` returns
        True. If this method raises KafkaError, the group is unchanged.
        """
        if self.is_unloaded:
            raise unloaded(self.group_id, ErrorCode.NOT_COORDINATOR)
        if request.member_epoch < 0:
            return self._leave(request, now)
        settings = self.settings
        if request.member_id not in self.state.members:
            self.state.check_not_full(self.kind, settings.max_size)
        owned = owned_by(request)
        before = self._before(request, owned)
        member = before.updated(request, client_id, client_host)
        self.deadlines.start_session(member.member_id, settings.session_timeout, now)
        self.deadlines.end_classic(member.member_id)
        after = self.step(before, member, owned, now, may_describe)
        self.state.finish()
        response = ConsumerGroupHeartbeatResponse(
            member_id=after.member_id, member_epoch=after.epoch, heartbeat_interval_ms=settings.heartbeat_interval
        )
        if request.member_epoch == JOIN_EPOCH or is_full(request) or after.assigned != before.assigned:
            response.assignment = assignment_of(after)
        return response

    def _before(self, request: ConsumerGroupHeartbeatRequest, owned: frozenset[PartitionId] | None) -> ConsumerMember:
        """Return the member's state before the request. If the client joins the group, return a new member.

        Raises KafkaError if the heartbeat contains a wrong id or a wrong epoch.
        """
        member_id = request.member_id or encode_uuid(uuid4())
        joins = request.member_epoch == JOIN_EPOCH
        if request.instance_id is not None and (old_id := self.state.instances.get(request.instance_id)) is not None:
            old = self.state.members[old_id]
            if joins:
                self._check_released(old, request)
                return replace(old, member_id=member_id, epoch=0, previous_epoch=0)
            check_instance(old_id, request)
        elif request.instance_id is not None and not joins:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        if joins and member_id not in self.state.members:
            return ConsumerMember(member_id)
        member = self.state.known(member_id)
        member.check_epoch(request.member_epoch, owned)
        return member

    def _check_released(self, old: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> None:
        if old.epoch != STATIC_LEAVE_EPOCH and old.classic is None:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {request.instance_id} cannot join the group "
                f"because the instance id is owned by {old.member_id} member.",
            )

    def step(
        self,
        before: ConsumerMember,
        member: ConsumerMember,
        owned: frozenset[PartitionId] | None,
        now: int,
        may_describe: MayDescribe,
    ) -> ConsumerMember:
        """Store the member's subscription, and move the member one step towards its target assignment.

        If the target assignment is outdated, the group first computes a new one (see `is_assignment_due`). Return the
        member after the step. The caller must then call `state.finish`.
        """
        old_id = self.state.instances.get(member.instance_id or "")
        if old_id is not None and old_id != member.member_id:
            self._replace(old_id, member)
        if self.state.members.get(member.member_id) != member:
            self.state.put_metadata(member)
        changed = (member.topics, member.regex) != (before.topics, before.regex)
        epoch = self.state.epoch
        self.subscriptions.refresh(changed, may_describe)
        if self.state.epoch != epoch:
            self._causes.append(_cause(before, member, changed))
        self._assign_if_due()
        return self._reconcile(member, owned, changed, now)

    def _replace(self, old_id: str, member: ConsumerMember) -> None:
        """Replace the restarted static member `old_id` with `member`.

        The new member receives the target assignment of the old member.
        """
        self.event_texts.append(f"member {member.member_id} replaces member {old_id}")
        target = self.state.targets.get(old_id, frozenset())
        self.state.remove(old_id)
        self.deadlines.remove(old_id)
        self.state.put_metadata(member)
        self.state.set_target(member.member_id, target)
        self.state.put_assignment(member)

    # -- heartbeat, part 2: compute a new target assignment

    @property
    def is_assignment_due(self) -> bool:
        """Whether the group computes a new target assignment at the next heartbeat or JoinGroup request of a member.

        This is true if the present target is outdated, and if the group computed it at least
        `group.consumer.assignment.interval.ms` ago.
        """
        since = self.state.assignment_timestamp
        is_early = bool(since) and self._clock() < since + self.settings.assignment_interval
        return self.state.assignment_epoch < self.state.epoch and not is_early

    def _assign_if_due(self) -> None:
        if not self.is_assignment_due:
            return
        members = [
            MemberToAssign(
                member.member_id,
                member.instance_id,
                self.subscriptions.ids_of(member),
                self.state.targets.get(member.member_id, frozenset()),
            )
            for member in self.state.members.values()
        ]
        partitions = {topic.id: topic.partitions for topic in self.subscriptions.topics()}
        targets = ASSIGNORS[self.assignor](members, partitions)
        epoch = self.state.epoch
        reason = ", ".join(self._causes) or "an earlier change was not assigned yet"
        self._causes.clear()
        text = f"rebalance to epoch {epoch}, because {reason}; the assignor {self.assignor} assigns the partitions"
        self.event_texts.append(text)
        for member_id, target in targets.items():
            self.state.set_target(member_id, target)
        self.state.set_assignment_epoch(epoch, self._clock())

    @property
    def assignor(self) -> str:
        """The name of the assignor that most members prefer, or "uniform" if no member prefers an assignor."""
        preferred = Counter(member.assignor for member in self.state.members.values() if member.assignor is not None)
        return preferred.most_common(1)[0][0] if preferred else UNIFORM

    # -- heartbeat, part 3: change the member's own assignment

    def _reconcile(
        self, member: ConsumerMember, owned: frozenset[PartitionId] | None, changed: bool, now: int
    ) -> ConsumerMember:
        if not changed and member.is_reconciled_to(self.state.assignment_epoch):
            return member
        partitions = self.state.targets.get(member.member_id, frozenset())
        read = self.subscriptions.ids_of(member)
        target = MemberTarget(self.state.assignment_epoch, partitions, read, self.state.is_taken, changed)
        after = member.reconciled(target, owned)
        if after != member:
            self.state.put_assignment(after)
            self.deadlines.watch_revocation(after, now)
        return after

    # -- removal of members

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now: int) -> ConsumerGroupHeartbeatResponse:
        if request.instance_id is not None:
            known = self.state.instances.get(request.instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
            check_instance(known, request)
        else:
            self.state.known(request.member_id)
        if request.member_epoch == LEAVE_EPOCH or request.instance_id is None:
            self.remove([request.member_id], LEAVES, now)
        else:
            self.state.put_assignment(self.state.members[request.member_id].temporarily_left())
            self.deadlines.end_revocation(request.member_id)
        self.state.finish()
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def remove(self, member_ids: Sequence[str], reason: str, now: int) -> None:
        """Remove members. If possible, replace this group with a classic group (a downgrade).

        A downgrade is possible only if all remaining members use the classic protocol (`try_downgrade`). After a
        downgrade, the field `successor` contains the classic group.
        """
        if self.try_downgrade(member_ids, now):
            self.event_texts += [f"member {member_id} is removed: {reason}" for member_id in member_ids]
        else:
            super().remove(member_ids, reason, now)

    def try_downgrade(self, leaving: Collection[str], now: int) -> bool:
        """Replace this group with a classic group if possible. Return whether the group was replaced.

        `leaving` contains the ids of members that leave the group. The classic group contains all remaining members.

        The replacement is possible only if the migration policy allows it, and if all remaining members use the classic
        protocol. After a replacement, the field `successor` contains the classic group.
        """
        self.successor = self._downgraded(self, leaving, now)
        if self.successor is not None:
            self.unload()
        return self.successor is not None

    def _on_removed(self, member_ids: Sequence[str], reason: str) -> None:
        self._causes += [f"member {member_id} is removed ({reason})" for member_id in member_ids]
        self.subscriptions.members_removed()

    def _meet_deadlines(self, now: int) -> None:
        super()._meet_deadlines(now)
        if late := self.deadlines.late_to_join(now):
            self.remove(late, "the member did not send JoinGroup within its rebalance timeout", now)
        if late := self.deadlines.late_to_sync(now):
            self.remove(late, "the member did not send SyncGroup within its rebalance timeout", now)

    def resume(self, now: int) -> None:
        usual = self.settings.session_timeout
        self.deadlines.restart([(member, member.session_timeout(usual)) for member in self.state.members.values()], now)
        self.subscriptions.forget_version()

    # -- offsets

    def check_commit(self, commit: Commit, now: int) -> None:
        """Check that the sender of a commit is allowed to commit these offsets.

        Raises COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH,
        ILLEGAL_GENERATION.
        """
        if self.is_unloaded:  # The group was deleted, so a committed offset would be lost.
            raise unloaded(self.group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        epoch = commit.epoch
        if (epoch < 0 and not self.state.members) or commit.names_no_member:
            return  # The sender is an admin client, or a consumer that uses the group only to store offsets.
        self.state.known(commit.member_id).check_commit(commit)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check that the sender is allowed to fetch committed offsets.

        Raises UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.
        """
        if member_id is not None or epoch >= 0:
            self.state.known(member_id or "").check_fetch(epoch)

    def reads(self, topic: str) -> bool:
        return self.subscriptions.include(topic)

    # -- admin requests

    @property
    def size(self) -> int:
        """The sum of the sizes of all members' subscriptions and protocols, in bytes."""
        return sum(member.size for member in self.state.members.copy().values())


def _cause(before: ConsumerMember, member: ConsumerMember, changed: bool) -> str:
    """Return the reason why a heartbeat causes a rebalance, as a text for the broker's list of events."""
    if not changed:
        return "topics that the group reads have changed"
    who = f"member {member.member_id} (client {member.client_id})"
    return f"{who} subscribes to other topics" if before.topics or before.regex else f"the new {who} joins"
