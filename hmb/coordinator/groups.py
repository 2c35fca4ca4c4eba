"""The group coordinator: the table of groups, for the threads of many connections.

What a group does is told in classic_group.py and consumer_group.py, how threads share one in shared_group.py. Here
groups are found, made, listed and deleted, and restored at start: the journal gives back its records, and who asks for
a group before that is done is told COORDINATOR_LOAD_IN_PROGRESS.

A group exists as soon as somebody joins it without a member id, or commits offsets to it, and until it is deleted or
its last offset expires.

Source: Kafka's `GroupCoordinatorService`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from hmb.coordinator.classic.group import ClassicGroup, DescribedGroup, MemberIdentity
from hmb.coordinator.classic.rebalance import GroupSettings
from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.group import Commit, Write
from hmb.coordinator.group_expiry import expiry, is_subscribed
from hmb.coordinator.group_listing import ListedGroup, listed
from hmb.coordinator.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
)
from hmb.coordinator.group_timer import GroupTimer, monotonic_ms
from hmb.coordinator.journal import Journal, Pending
from hmb.coordinator.member_room import check_room
from hmb.coordinator.modern.description import DescribedConsumerGroup, describe_consumer_group
from hmb.coordinator.modern.group import ConsumerGroup, ConsumerGroupSettings
from hmb.coordinator.modern.heartbeat import JOINS, check_heartbeat
from hmb.coordinator.modern.member import subscription_size
from hmb.coordinator.offset_manager import OffsetManager
from hmb.coordinator.offsets import CommittedOffset
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.coordinator.shared_group import SharedGroup, WaitingCall
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.topics import OFFSETS_TOPIC, TopicPartition
from hmb.records import EndTransactionMarker
from hmb.storage.isolation import isolated
from hmb.storage.log import now_ms

LOGGER = logging.getLogger(__name__)


class GroupCoordinator:
    """All groups of this broker. Thread-safe."""

    def __init__(
        self,
        journal: Journal,
        settings: GroupSettings,
        topics: ClusterTopics,
        consumer_settings: Callable[[str], ConsumerGroupSettings] = lambda group_id: ConsumerGroupSettings(),
        *,
        wall_clock: Callable[[], int] = now_ms,
        clock: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._journal = journal
        self._offsets = OffsetManager(journal)
        self._settings = settings
        self._topics = topics
        self._consumer_settings = consumer_settings
        self._wall_clock = wall_clock
        self._clock = clock
        self._timer = GroupTimer(clock)
        self._lock = threading.Lock()  # guards the table and `_stopping`; a group's lock is never taken under it
        self._groups: dict[str, SharedGroup] = {}
        self._stopping = False
        self.loaded = threading.Event()
        self._loader = threading.Thread(target=self._load, name="group-loader", daemon=True)
        self._stop_loading = threading.Event()

    # -- start and stop

    def start(self) -> None:
        """Load the groups, in a thread; until then they are not served."""
        self._timer.start()
        self._loader.start()

    def stop(self, deadline: float) -> None:
        """Answer all who wait, with NOT_COORDINATOR: they look for the coordinator until it is there again."""
        self._stop_loading.set()
        with self._lock:
            self._stopping = True
        for group in self._all():
            group.unload()
        self._timer.stop()
        for thread in (self._timer.thread, self._loader):
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _load(self) -> None:
        self._journal.load(self.replay, self._stop_loading)
        for group in self._all():
            with isolated(LOGGER, f"group {group.group.group_id}", "it does not go on after the start"):
                group.step(group.group.resume)
        self.loaded.set()

    def replay(self, key: Key, value: Value, producer_id: int | None = None) -> None:
        """A record of the journal, the newest with its key; or one of a producer's open transaction."""
        if isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            classic = ClassicGroup.restore(key.group, value, self._settings, self._wall_clock)
            self._find_or_make(key.group).group = classic
        elif isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            assert isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
            self._find_or_make(key.group)  # where there is nothing else of it, it is but a name for its offsets
            self._offsets.replay(key, value, producer_id)
        else:  # of a group of KIP-848's protocol: each key tells a part of it
            group_id: str = key.group_id  # type: ignore[attr-defined]
            shared = self._find_or_make(group_id)
            if not isinstance(shared.group, ConsumerGroup):
                shared.group = self._consumer(group_id)
            shared.group.replay(key, value)

    def make_topic(self) -> None:
        """Make the journal's topic where there is none: somebody asks for a coordinator. Raises KafkaError."""
        self._journal.make_topic()

    # -- the table

    def _all(self) -> list[SharedGroup]:
        with self._lock:
            return list(self._groups.values())

    def _find(self, group_id: str) -> SharedGroup:
        """Raises GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        self._journal.check_coordinates(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def _find_or_make(self, group_id: str) -> SharedGroup:
        """Raises COORDINATOR_NOT_AVAILABLE: the broker stops."""
        with self._lock:
            if self._stopping:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            if group_id not in self._groups:
                made = self._classic(group_id)
                self._groups[group_id] = SharedGroup(made, self._journal, self._timer, self._clock)
            return self._groups[group_id]

    def _classic(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self._settings, self._wall_clock)

    def _consumer(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id, self._consumer_settings, self._topics, self._wall_clock)

    def _find_of_member(self, group_id: str) -> SharedGroup:
        """The classic group of somebody who says to be a member.

        Raises INVALID_GROUP_ID, UNKNOWN_MEMBER_ID and as `_find`.
        """
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        try:
            group = self._find(group_id)
            if not isinstance(group.group, ClassicGroup):
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            return group
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, error.message) from error
            raise

    # -- members

    def join(self, call: WaitingCall, request: JoinGroupRequest) -> JoinGroupResponse:
        """Become a member, or stay one; returns when all members have joined. Raises KafkaError."""
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        shortest, longest = self._settings.min_session_timeout, self._settings.max_session_timeout
        if not shortest <= request.session_timeout_ms <= longest:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        check_room(sum(len(protocol.metadata) for protocol in request.protocols), self._all)
        if request.member_id:
            group = self._find_of_member(request.group_id)
        else:
            self._journal.check_coordinates(request.group_id)
            group = self._find_or_make(request.group_id)
        group.step(lambda now: self._as_classic(group).join(call, request, now))
        response: JoinGroupResponse = call.wait()
        return response

    def _as_classic(self, group: SharedGroup) -> ClassicGroup:
        """With its lock held: an empty group of the other protocol becomes one of this.

        Raises INCONSISTENT_GROUP_PROTOCOL, COORDINATOR_NOT_AVAILABLE.
        """
        group.check_loaded()
        if isinstance(group.group, ConsumerGroup):
            if not group.group.is_empty:
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            classic = self._classic(group.group.group_id)
            classic.writes.append(Write(group.group.tombstones()))
            group.group = classic
        return group.classic

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client_id: str, client_host: str, version: int
    ) -> ConsumerGroupHeartbeatResponse:
        """All that a member of KIP-848's protocol says and hears; returns when it is durable. Raises KafkaError."""
        check_heartbeat(request, version)
        check_room(subscription_size(request.subscribed_topic_names or (), request.subscribed_topic_regex), self._all)
        joins = request.member_epoch == JOINS
        self._journal.check_coordinates(request.group_id)
        group = self._find_or_make(request.group_id) if joins else self._groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        return group.step(
            lambda now: self._as_consumer(group, joins).heartbeat(request, client_id, client_host, now), durable=True
        )

    def _as_consumer(self, group: SharedGroup, joins: bool) -> ConsumerGroup:
        """With its lock held: an empty group of the other protocol becomes one of this where somebody joins it.

        Raises GROUP_ID_NOT_FOUND, COORDINATOR_NOT_AVAILABLE.
        """
        if joins:
            group.check_loaded()
        if joins and isinstance(group.group, ClassicGroup) and group.group.is_empty:
            consumer, was_written = self._consumer(group.group.group_id), group.group.protocol_type is not None
            tombstones = group.group.tombstones()
            if was_written:
                consumer.take_the_place_of(tombstones)
            group.group = consumer
        return group.consumer

    def sync(self, call: WaitingCall, request: SyncGroupRequest) -> SyncGroupResponse:
        """Get an assignment; returns when the leader has brought it. Raises KafkaError."""
        group = self._find_of_member(request.group_id)
        group.step(lambda now: group.classic.sync(call, request, now))
        response: SyncGroupResponse = call.wait()
        return response

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """Stay a member. Raises KafkaError."""
        try:
            group = self._find_of_member(request.group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return  # its session begins when all is loaded
            raise
        with group.lock:  # no step: deadlines move on, nothing else changes
            group.classic.heartbeat(request, self._clock())

    def leave(self, group_id: str, leaving: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """Let members go; what became of each. Raises KafkaError."""
        try:
            group = self._find_of_member(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_MEMBER_ID:
                return [error.code] * len(leaving)
            raise
        return group.step(lambda now: group.classic.leave(leaving, now), durable=True)

    # -- admins

    def describe(self, group_id: str) -> DescribedGroup:
        """State and members. Raises KafkaError."""
        group = self._find(group_id)
        with group.lock:
            return group.classic.describe()

    def describe_consumer(self, group_id: str) -> DescribedConsumerGroup:
        """State and members of a group of KIP-848's protocol. Raises KafkaError."""
        group = self._find(group_id)
        with group.lock:
            return describe_consumer_group(group.consumer, self._topics)

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """The groups in these states and of these types, or in all. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        if not self.loaded.is_set():
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return listed((shared.group for shared in self._all()), states, types)

    def delete(self, group_id: str) -> None:
        """Forget a group without members, and its offsets. Raises NON_EMPTY_GROUP and as `describe`."""
        group = self._find(group_id)
        with group.lock:
            self._delete(group)

    def _delete(self, group: SharedGroup) -> None:
        """With its lock held, for as long as the disk takes: nobody finds it half deleted."""
        group_id = group.group.group_id
        self._journal.write(self._offsets.begin_delete(group_id, None, group.group.tombstones()))
        group.group.unload()
        with self._lock:
            if self._groups.get(group_id) is group:  # the table is a new one where the journal's topic was deleted
                del self._groups[group_id]

    # -- offsets

    def begin_commit(self, group_id: str, commit: Commit) -> Pending:
        """Commit offsets: they have their place, and are committed after `finish`. Raises KafkaError.

        A negative epoch is that of somebody who is in no group and needs no more than a name for the offsets.
        """
        if commit.epoch < 0:
            self._journal.check_coordinates(group_id)
            group = self._find_or_make(group_id)
        else:
            group = self._find(group_id)
        with group.lock:
            group.group.check_commit(commit, self._clock())
            return self._offsets.begin_commit(group_id, commit.offsets, commit.producer)

    def finish(self, commit: Pending) -> None:
        """Return when its offsets are durable. Raises KafkaError: then none of them is committed."""
        self._journal.write(commit)

    def fetch_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> dict[TopicPartition, CommittedOffset]:
        """Those of these partitions (None: all) that the group has committed. Raises KafkaError."""
        self._journal.check_coordinates(group_id)
        group = self._groups.get(group_id)
        if group is not None:
            with group.lock:
                group.group.check_fetch(member_id, member_epoch)
        return self._offsets.fetch(group_id, partitions)

    def pending_offsets(self, group_id: str) -> set[TopicPartition]:
        """The partitions of which a transaction that is not over yet holds offsets."""
        return self._offsets.pending(group_id)

    def partition_for(self, group_id: str) -> TopicPartition:
        """Where the group's offsets are kept. Raises NOT_COORDINATOR."""
        return TopicPartition(OFFSETS_TOPIC, self._journal.partition_for(group_id))

    def begin_end(self, number: int, marker: EndTransactionMarker, producer: ProducerIdAndEpoch) -> Pending:
        """End a transaction in a partition of the journal, durably after `finish`. Raises KafkaError."""
        return self._offsets.begin_end_transaction(number, marker, producer)

    def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> set[str]:
        """Forget these offsets, but for the topics that the group reads: returns which. Raises KafkaError."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = self._find(group_id)
        with group.lock:
            if not group.group.is_empty and group.group.protocol_type != CONSUMER:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
            read = {topic for topic in {each.topic for each in partitions} if is_subscribed(group.group, topic)}
            place = self._offsets.begin_delete(group_id, [each for each in partitions if each.topic not in read])
        self._journal.write(place)
        return read

    def on_topics_deleted(self, ids: Mapping[str, UUID]) -> None:
        """Forget the offsets of deleted topics (ids by name), and all groups if the journal's is among them."""
        if OFFSETS_TOPIC not in ids:
            for group in self._all():
                with group.lock:
                    self._offsets.delete_topics(group.group.group_id, ids)
            return
        with self._lock:
            groups, self._groups = self._groups, {}
        for group in groups.values():
            group.unload()
        self._offsets.forget_all()

    def expire_offsets(self, retention_ms: int) -> None:
        """Delete the offsets that have expired, and the groups that have nothing left."""
        for group in self._all():
            with isolated(LOGGER, f"group {group.group.group_id}", "its offsets do not expire"):
                self._expire(group, retention_ms)

    def _expire(self, group: SharedGroup, retention_ms: int) -> None:
        group_id = group.group.group_id
        with group.lock:
            when = expiry(group.group)
            if when is None:
                return
            gone = self._offsets.expired(group_id, self._wall_clock(), retention_ms, when)
            is_awaited = group.group.next_deadline() is not None  # by somebody who was given a member id
            is_left = len(gone) < len(self._offsets.fetch(group_id)) or is_awaited or self._offsets.pending(group_id)
            if group.group.is_empty and not is_left:
                self._delete(group)
            elif gone:
                self._journal.write(self._offsets.begin_delete(group_id, gone))
