"""The group coordinator: it handles the requests of members. The threads of all connections share one coordinator.

`GroupCoordinator` finds the group of each request in the table (group_table.py), or adds a new group to the table. When
the broker starts, `GroupCoordinator` restores the groups from the journal, one partition of the journal after the
other. Until the partition of a group is loaded, requests for this group receive the error COORDINATOR_LOAD_IN_PROGRESS.
A Heartbeat request is the exception: it succeeds.

Other modules do the remaining work:
- classic/group.py, consumer/group.py, share/group.py and streams/group.py contain the behaviour of one group.
- The modules `requests` of the folders consumer, share and streams handle the requests for these groups.
- `GroupConverter` (migration/converter.py) changes the protocol of a group.
- `GroupRunner` lets several threads use the same group.
- `OffsetRequests` handles the requests for committed offsets.

A client creates a group when it joins the group for the first time, or when it commits the first offsets for the
group. The broker removes a group in two cases: a client deletes the group, or the group has no members and all of
its committed offsets have expired.

Source: Kafka's `GroupCoordinatorService`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from hmb.coordinator.classic.description import DescribedGroup, describe_classic_group
from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import MemberIdentity
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.cluster_topics import ClusterTopics, MayDescribe, everything
from hmb.coordinator.consumer.settings import ConsumerGroupSettings
from hmb.coordinator.group_keys import OFFSETS_KEYS
from hmb.coordinator.group_runner import GroupRunner, WaitingCall
from hmb.coordinator.group_table import GroupTable, ListedGroup, check_group_id, listed
from hmb.coordinator.group_timer import GroupTimer
from hmb.coordinator.journal.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
)
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.member_memory import check_memory
from hmb.coordinator.offset_manager import OffsetManager
from hmb.coordinator.offset_requests import OffsetRequests
from hmb.coordinator.share.group_records import SHARE_KEYS
from hmb.coordinator.share.settings import ShareGroupSettings
from hmb.coordinator.streams.records import STREAMS_KEYS
from hmb.protocol.enums import CONSUMER_GROUP_TYPES, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.topics import OFFSETS_TOPIC
from hmb.storage.clock import monotonic_ms
from hmb.storage.events import EventLog
from hmb.storage.failure_isolation import isolated
from hmb.units import now_ms

if TYPE_CHECKING:
    from hmb.coordinator.migration.converter import GroupConverter
    from hmb.coordinator.modern.group import AnyModernGroup
    from hmb.coordinator.streams.settings import StreamsGroupSettings

LOGGER = logging.getLogger(__name__)


class GroupCoordinator:
    """The coordinator of all groups of the broker. Thread-safe.

    The coordinator handles the requests of members. Its field `offsets` handles the requests for committed offsets.
    """

    def __init__(
        self,
        journal: Journal,
        settings: GroupSettings,
        topics: ClusterTopics,
        consumer_settings: Callable[[str], ConsumerGroupSettings],
        share_settings: Callable[[str], ShareGroupSettings] | None = None,
        streams_settings: Callable[[str], StreamsGroupSettings] | None = None,
        *,
        wall_clock: Callable[[], int] = now_ms,
        clock: Callable[[], int] = monotonic_ms,
        events: EventLog | None = None,
    ) -> None:
        self._events = EventLog(wall_clock) if events is None else events
        self._journal = journal
        self._offset_manager = OffsetManager(journal)
        self._settings = settings
        self.topics = topics
        self._consumer_settings = consumer_settings
        self._modern_settings: dict[GroupType, Callable[[str], Any] | None] = {
            GroupType.SHARE: share_settings,  # None if the coordinator has no share groups
            GroupType.STREAMS: streams_settings,  # None if the coordinator has no streams groups
        }
        self._wall_clock = wall_clock
        self._clock = clock
        self.timer = GroupTimer(clock)
        self._table = GroupTable(self._make, journal)
        self.offsets = OffsetRequests(self._table, journal, self._offset_manager, wall_clock, clock)
        self.loaded = threading.Event()
        self._loader = threading.Thread(target=self._load, name="group-loader", daemon=True)
        self._stop_loading = threading.Event()

    @cached_property
    def converter(self) -> GroupConverter:
        """The object that makes and converts KIP-848 groups.

        This property imports the modules of KIP-848 groups when it is first used. The import takes 15 ms, and a broker
        without KIP-848 groups does not need it.
        """
        from hmb.coordinator.migration.converter import GroupConverter

        return GroupConverter(self._settings, self._consumer_settings, self.topics, self._wall_clock)

    # -- start and stop

    def start(self) -> None:
        """Start the timer and a thread that loads the groups.

        Until a group is loaded, most requests for it receive the error COORDINATOR_LOAD_IN_PROGRESS.
        """
        self.timer.start()
        self._loader.start()

    def stop(self, deadline: float) -> None:
        """Stop the coordinator. Clients that wait receive NOT_COORDINATOR, and then look for the coordinator again."""
        self._stop_loading.set()
        self._table.close()
        for runner in self._table.all():
            runner.unload()
        self.timer.stop()
        for thread in (self.timer.thread, self._loader):
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _load(self) -> None:
        self._journal.load(self.replay, self._stop_loading, OFFSETS_KEYS)
        for runner in self._table.all():
            with isolated(LOGGER, f"group {runner.machine.group_id}", "the group is not restored"):
                runner.step(runner.machine.resume)
        self.loaded.set()

    def replay(self, key: Key, value: Value, producer_id: int | None = None) -> None:
        """Restore the part of a group that is stored in one record of the journal.

        If the record belongs to an open transaction, `producer_id` is the id of the producer. Otherwise it is None.
        """
        if isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            classic = ClassicGroup.restore(key.group, value, self._settings, self._wall_clock)
            self._table.find_or_make(key.group).machine = classic
        elif isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            assert isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
            self._table.find_or_make(key.group)  # A group can have committed offsets, but no other records.
            self._offset_manager.replay(key, value, producer_id)
        else:  # A group that is not classic has several records; each contains a part of its state.
            self._replay_part(key, value)

    def _replay_part(self, key: Key, value: Value) -> None:
        group_id: str = key.group_id  # type: ignore[attr-defined]
        runner = self._table.find_or_make(group_id)
        kind = _class_of(key)
        if not isinstance(runner.machine, kind):
            runner.machine = self._modern(kind, group_id)
        runner.as_kind(kind).replay(key, value)

    def make_topic(self) -> None:
        """Create the journal's topic if it does not exist. Raises KafkaError."""
        self._journal.make_topic()

    # -- the table of groups

    def all(self) -> list[GroupRunner]:
        """Return all groups."""
        return self._table.all()

    def find(self, group_id: str) -> GroupRunner:
        """Return the group with this id. Raises GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        return self._table.find(group_id)

    def find_or_make(self, group_id: str) -> GroupRunner:
        """Return the group with this id, or create it. Raises the errors of `find`, except GROUP_ID_NOT_FOUND."""
        self._journal.check_coordinates(group_id)
        return self._table.find_or_make(group_id)

    def has_offsets(self, group_id: str) -> bool:
        """Return whether the group has committed offsets."""
        return bool(self._offset_manager.fetch(group_id))

    def replace_empty_classic(self, runner: GroupRunner, kind: type[AnyModernGroup]) -> None:
        """Replace a classic group without members by a new group of the class `kind`. Leave any other group unchanged.

        The group keeps its committed offsets. When the new group first writes to the journal, it also deletes the
        record of the classic group there. The caller must hold the group's lock.
        """
        classic = runner.machine
        if not isinstance(classic, ClassicGroup) or not classic.is_empty:
            return
        modern = self._modern(kind, classic.group_id)
        if classic.protocol_type is not None:  # A classic group that never had a member has no record.
            modern.state.replace_classic(classic.tombstones())
        runner.machine = modern

    def _make(self, group_id: str) -> GroupRunner:
        """Return a new group, which uses the classic protocol until a member joins with another protocol."""
        group = ClassicGroup(group_id, self._settings, self._wall_clock)
        return GroupRunner(group, self._journal, self.timer, self._clock, self._events)

    def _modern(self, kind: type[AnyModernGroup], group_id: str) -> AnyModernGroup:
        if kind.kind is GroupType.CONSUMER:
            return self.converter.consumer(group_id)
        settings = self._modern_settings[kind.kind]
        assert settings is not None
        return kind(group_id, settings, self.topics, self._wall_clock)

    def _find_existing(self, group_id: str) -> GroupRunner:
        """Return the group with this id.

        Raises UNKNOWN_MEMBER_ID if no group has this id. Also raises INVALID_GROUP_ID, and the other errors of
        `GroupTable.find`.
        """
        check_group_id(group_id)
        try:
            return self._table.find(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, error.message) from error
            raise

    def _find_of_member(self, group_id: str) -> GroupRunner:
        """Return the classic group or the KIP-848 group with this id.

        Both kinds of groups handle requests of the classic protocol. During a migration, some members of a KIP-848
        group still use this protocol. Raises UNKNOWN_MEMBER_ID if the group is a share group or a streams group. Also
        raises the errors of `_find_existing`.
        """
        runner = self._find_existing(group_id)
        if runner.machine.kind not in CONSUMER_GROUP_TYPES:
            why = f"group {group_id!r} is a {runner.machine.kind} group, and has no members with the classic protocol"
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)
        return runner

    # -- members

    def join(
        self, call: WaitingCall, request: JoinGroupRequest, may_describe: MayDescribe = everything
    ) -> JoinGroupResponse:
        """Handle JoinGroup: wait until all members have joined, and return the response. Raises KafkaError."""
        check_group_id(request.group_id)
        shortest, longest = self._settings.min_session_timeout, self._settings.max_session_timeout
        if not shortest <= request.session_timeout_ms <= longest:
            why = f"session.timeout.ms is {request.session_timeout_ms}; the broker allows {shortest} to {longest}"
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, why)
        check_memory(sum(len(protocol.metadata) for protocol in request.protocols), self._table.all)
        if request.member_id:
            runner = self._find_existing(request.group_id)
        else:
            self._journal.check_coordinates(request.group_id)
            runner = self._table.find_or_make(request.group_id)
        # If `is_mixed` is true, the client uses the classic protocol in a group of the new protocol (KIP-848). Then
        # `step` must raise an error if the broker cannot write the group's new records. The client receives this error.
        is_mixed = runner.machine.kind is GroupType.CONSUMER
        runner.step(lambda now: self._join(runner, call, request, now, may_describe), durable=is_mixed)
        response: JoinGroupResponse = call.wait()
        return response

    def _join(
        self, runner: GroupRunner, call: WaitingCall, request: JoinGroupRequest, now: int, may_describe: MayDescribe
    ) -> None:
        runner.check_loaded()
        if isinstance(runner.machine, ClassicGroup):
            runner.machine.join(call, request, now)
        else:
            self.converter.join(runner, call, request, now, may_describe)

    def sync(self, call: WaitingCall, request: SyncGroupRequest) -> SyncGroupResponse:
        """Handle SyncGroup: wait for the leader's assignment, and return the response. Raises KafkaError."""
        runner = self._find_of_member(request.group_id)
        runner.step(lambda now: self._sync(runner, call, request, now))
        response: SyncGroupResponse = call.wait()
        return response

    def _sync(self, runner: GroupRunner, call: WaitingCall, request: SyncGroupRequest, now: int) -> None:
        if isinstance(runner.machine, ClassicGroup):
            runner.machine.sync(call, request, now)
        else:
            self.converter.sync(runner, call, request, now)

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """Extend the session of a member. Raises KafkaError."""
        try:
            runner = self._find_of_member(request.group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return  # Sessions start only after all groups are loaded.
            raise
        with runner.lock:
            if isinstance(runner.machine, ClassicGroup):  # The heartbeat changes only a deadline: nothing is written.
                runner.machine.heartbeat(request, self._clock())
                return
        runner.step(lambda now: self.converter.heartbeat(runner, request, now))

    def leave(self, group_id: str, leaving: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """Remove members from a group. Return one error code for each entry of `leaving`. Raises KafkaError."""
        try:
            runner = self._find_of_member(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_MEMBER_ID:
                return [error.code] * len(leaving)
            raise
        return runner.step(lambda now: self._leave(runner, leaving, now), durable=True)

    def _leave(self, runner: GroupRunner, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
        if isinstance(runner.machine, ClassicGroup):
            return runner.machine.leave(leaving, now)
        return self.converter.leave(runner, leaving, now)

    # -- admin requests

    def describe(self, group_id: str) -> DescribedGroup:
        """Return the state and the members of a classic group. Raises KafkaError."""
        runner = self._table.find(group_id)
        with runner.lock:
            return describe_classic_group(runner.as_kind(ClassicGroup).state)

    def last_heartbeats(self, group_id: str) -> dict[str, int]:
        """Return, for each member of a group, the time (ms) since its last heartbeat. Raises KafkaError."""
        runner = self._table.find(group_id)
        with runner.lock:
            now = self._clock()
            return {member_id: now - heard for member_id, heard in runner.machine.last_heartbeats().items()}

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """Return the groups with a state in `states` and a type in `types`.

        If `states` is empty, every state matches. If `types` is empty, every type matches. Raises
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        if not self.loaded.is_set():
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the broker still loads its groups; try again")
        return listed((runner.machine for runner in self._table.all()), states, types)

    def delete(self, group_id: str) -> None:
        """Delete a group without members, and delete its offsets.

        Raises NON_EMPTY_GROUP and the errors of `describe`.
        """
        runner = self._table.find(group_id)
        with runner.lock:
            self.offsets.delete_group(runner)

    def on_topics_deleted(self, ids: Mapping[str, UUID]) -> None:
        """Delete the committed offsets of deleted topics. `ids` maps the name of each deleted topic to its id.

        The topic `__consumer_offsets` stores all groups. If it is one of the deleted topics, remove all groups.
        """
        if OFFSETS_TOPIC not in ids:
            for runner in self._table.all():
                with runner.lock:
                    self._offset_manager.delete_topics(runner.machine.group_id, ids)
            return
        for runner in self._table.clear():
            runner.unload()
        self._offset_manager.forget_all()


def _class_of(key: Key) -> type[AnyModernGroup]:
    """Return the class of the group to which a record belongs."""
    # The three imports below take 50 ms, and most brokers have only classic groups. So this function imports a class
    # only when a record belongs to a group of this class.
    if isinstance(key, SHARE_KEYS):
        from hmb.coordinator.share.group import ShareGroup

        return ShareGroup
    if isinstance(key, STREAMS_KEYS):
        from hmb.coordinator.streams.group import StreamsGroup

        return StreamsGroup
    from hmb.coordinator.consumer.group import ConsumerGroup

    return ConsumerGroup
