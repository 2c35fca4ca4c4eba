"""One share group: its members, and the partitions that the broker assigns to them.

Share groups and KIP-848 groups (consumer/group.py) are similar: their members send heartbeats, and the broker
assigns partitions to the members. But share groups are simpler in two ways. First, several members may read the
same partition. A member therefore does not have to wait until other members give up a partition. Second, the
members do not commit offsets. Instead, the share coordinator stores which records the group has processed
(coordinator.py).

A *share-partition* is a partition as one share group sees it. Its state says which records the group has
processed. The share coordinator must create this state before a member reads the partition. The group therefore
handles a heartbeat in two parts:
1. `uninitialized` returns the subscribed partitions that have no state yet. The share coordinator creates their
   states. `set_initialized` then adds these partitions to the group's share-partitions.
2. `heartbeat` stores the member's subscription. If necessary, it computes a new assignment for all members. It
   then returns the response for the member.

For example, member A joins and subscribes to the topic "orders", which has 2 partitions. The share coordinator creates
one state for partition 0 and one for partition 1. The group assigns both partitions to A. When member B joins, A keeps
partition 0 and B gets partition 1.

Source: KIP-932; Kafka's `ShareGroup`, `GroupMetadataManager` (shareGroup...).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from hmb.coordinator.cluster_topics import AssignableTopic, existing_topics, metadata_hash
from hmb.coordinator.group import Commit, unloaded
from hmb.coordinator.member_memory import subscription_size
from hmb.coordinator.modern.group import LEAVES, ModernGroup
from hmb.coordinator.modern.heartbeat import INVALID_EPOCH, check_problems, empty_fields
from hmb.coordinator.modern.partitions import topics_of
from hmb.coordinator.modern.states import GROUP_STATES
from hmb.coordinator.share.assignor import assign_simple
from hmb.coordinator.share.group_state import ShareGroupState
from hmb.coordinator.share.member import ShareMember
from hmb.coordinator.share.settings import ShareGroupSettings
from hmb.protocol.enums import JOIN_EPOCH, LEAVE_EPOCH, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from hmb.protocol.topics import PartitionId

Assignment = ShareGroupHeartbeatResponse.Assignment
_DEAD, _EMPTY, *_, _STABLE = GROUP_STATES


class ShareGroup(ModernGroup[ShareGroupState, ShareGroupSettings]):
    """One share group, which handles the requests of its members.

    `state` stores the members, the epochs, the target assignment and the share-partitions.
    """

    kind = GroupType.SHARE
    group_states = (_DEAD, _EMPTY, _STABLE)  # With members, a group is always Stable.
    state_class = ShareGroupState

    # -- ShareGroupHeartbeat, part 1: share-partitions

    def uninitialized(self, request: ShareGroupHeartbeatRequest) -> list[PartitionId]:
        """Return the subscribed partitions that have no state yet.

        The subscribed topics are the topics in `request` and the topics to which the group's members already subscribe.
        If `request` is from a member that leaves the group, the result is empty.

        Raises NOT_COORDINATOR if the group was deleted.
        """
        if self.is_unloaded:
            raise unloaded(self.group_id, ErrorCode.NOT_COORDINATOR)
        if request.member_epoch < 0:
            return []
        names = self._subscribed() | frozenset(request.subscribed_topic_names or ())
        partitions = _partitions(existing_topics(self._topics, names))
        return [partition for partition in partitions if partition not in self.state.initialized]

    def set_initialized(self, partitions: Iterable[PartitionId]) -> None:
        """Add these partitions to the group's share-partitions. Their states must already exist.

        The group epoch increases. The current assignment is then outdated, so a later heartbeat computes a new
        one.
        """
        topics = [topic for each in {part.topic_id for part in partitions} if (topic := self._topics.by_id(each))]
        known = {topic.id for topic in topics}
        self.state.set_initialized(
            self.state.initialized.union(each for each in partitions if each.topic_id in known), topics
        )
        self.state.increase_epoch(self.state.metadata_hash)
        self.state.finish()

    def forget(self, topic_ids: Iterable[UUID]) -> list[PartitionId]:
        """Remove the share-partitions of these topics from the group, and return the removed ones."""
        gone = [partition for partition in self.state.initialized if partition.topic_id in set(topic_ids)]
        if gone:
            self.state.set_initialized(self.state.initialized.difference(gone), ())
            self.state.increase_epoch(self.state.metadata_hash)
            self.state.finish()
        return gone

    # -- ShareGroupHeartbeat, part 2: the member

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str, now: int
    ) -> ShareGroupHeartbeatResponse:
        """Handle a heartbeat that `check_heartbeat` has accepted, and return the response.

        If this method raises KafkaError, the group is unchanged.
        """
        if request.member_epoch == LEAVE_EPOCH:
            self.state.known(request.member_id)
            self.remove([request.member_id], LEAVES, now)
            self.state.finish()
            return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)
        settings = self._settings(self.group_id)
        before = self._before(request, settings.max_size)
        member = before.updated(request, client_id, client_host)
        self.deadlines.start_session(member.member_id, settings.session_timeout, now)
        if self.state.members.get(member.member_id) != member:
            self.state.put_metadata(member)
        self._refresh(changed=member.topics != before.topics)
        self._assign_if_due(settings.assignment_interval)
        after = member
        if member.epoch != self.state.assignment_epoch:
            target = self.state.targets.get(member.member_id, frozenset())
            after = member.moved(self.state.assignment_epoch, target)
            self.state.put_assignment(after)
        self.state.finish()
        response = ShareGroupHeartbeatResponse(
            member_id=after.member_id, member_epoch=after.epoch, heartbeat_interval_ms=settings.heartbeat_interval
        )
        is_full = request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names is not None
        if is_full or after.assigned != before.assigned:
            response.assignment = Assignment(topic_partitions=topics_of(Assignment.TopicPartitions, after.assigned))
        return response

    def _before(self, request: ShareGroupHeartbeatRequest, max_size: int) -> ShareMember:
        """Return the member's state before the request. If the client joins the group, return a new member.

        Raises KafkaError for a wrong id or epoch.
        """
        if request.member_epoch != JOIN_EPOCH:
            member = self.state.known(request.member_id)
            member.check_epoch(request.member_epoch)
            return member
        if request.member_id in self.state.members:
            return self.state.members[request.member_id]
        self.state.check_not_full(self.kind, max_size)
        return ShareMember(request.member_id)

    def _refresh(self, *, changed: bool) -> None:
        found = metadata_hash(existing_topics(self._topics, self._subscribed()))
        if changed or found != self.state.metadata_hash:
            self.state.increase_epoch(found)

    def _assign_if_due(self, interval: int) -> None:
        """Compute a new assignment if the current assignment is outdated and at least `interval` ms old.

        If no member has an assignment yet, the method ignores `interval`.
        """
        now = self._clock()
        is_recent = bool(self.state.targets) and now < self.state.assignment_timestamp + interval
        if self.state.assignment_epoch >= self.state.epoch or is_recent:
            return
        members = {
            member_id: frozenset(topic.id for topic in existing_topics(self._topics, member.topics))
            for member_id, member in self.state.members.items()
        }
        for member_id, target in assign_simple(members, self.state.initialized).items():
            self.state.set_target(member_id, target)
        text = f"rebalance to epoch {self.state.epoch}: members or topics of the share group have changed"
        self.event_texts.append(text)
        self.state.set_assignment_epoch(self.state.epoch, now)

    def _subscribed(self) -> frozenset[str]:
        return frozenset().union(*(member.topics for member in self.state.members.values()))

    def _on_removed(self, member_ids: Sequence[str], reason: str) -> None:
        self._refresh(changed=True)

    # -- A share group has no committed offsets. If a client commits or fetches offsets of a share group, the broker
    # returns an error.

    def check_commit(self, commit: Commit, now: int) -> None:
        raise self._not_a_consumer_group()

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        raise self._not_a_consumer_group()

    def reads(self, topic: str) -> bool:
        return False

    def _not_a_consumer_group(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    # -- admin requests

    @property
    def size(self) -> int:
        """The sum of the sizes of all members' subscriptions, in bytes."""
        return sum(subscription_size(member.topics, None) for member in self.state.members.copy().values())


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Check the fields of a heartbeat. Raises INVALID_REQUEST."""
    problems = {
        **empty_fields(request),
        "SubscribedTopicNames must be set in first request.": request.member_epoch == JOIN_EPOCH
        and not request.subscribed_topic_names,
        INVALID_EPOCH: request.member_epoch < LEAVE_EPOCH,
    }
    check_problems(problems)


def _partitions(topics: Iterable[AssignableTopic]) -> list[PartitionId]:
    return [PartitionId(topic.id, number) for topic in topics for number in range(topic.partitions)]
