"""One streams group: the broker assigns the tasks of a Kafka Streams application to the application's threads.

Each member of a streams group sends heartbeats (StreamsGroupHeartbeat requests). The group handles a heartbeat in
four parts:
1. The group stores the member's data. A member that joins also sends the topology: the parts of the application,
   and their topics.
2. The group checks whether the topics exist (topics.py). If a topic is missing, the members get no tasks, and the
   response contains a status with the reason.
3. If necessary, the assignor computes a *target assignment*: the tasks that each member must get (assignor.py).
4. The member takes one step towards its target tasks. For example, the member gives up a task (member.py).

The *group epoch* increases by 1 when a member, a topic, a setting or the topology changes. The *assignment epoch*
is the group epoch of the newest target assignment. If the group epoch is 5 and the assignment epoch is 4, the group
needs a new target assignment.

When a member joins an empty group, the group waits for more members before it computes a target assignment
(`group.streams.initial.rebalance.delay.ms`). The minimum time between two target assignments is
`group.streams.assignment.interval.ms`.

For example, a Kafka Streams application counts words. When it starts, its threads join an empty group. The application
needs an internal topic to redistribute the words by key (a repartition topic). This topic does not exist yet. So the
first response contains the status MISSING_INTERNAL_TOPICS, and the broker creates the topic. The group waits 3 s (the
default) for more threads, and then assigns the tasks. Each member receives its tasks in the response to its next
heartbeat.

Invariants:
- A task is active on at most one member. This member lists the task in `assigned` (the tasks that it may run) or in
  `revoking` (the tasks that it must give up).
- The epoch of a member is never greater than the assignment epoch.
- If the coordinator restores a group from its stored records, the group has the same state as before.

Some parts of KIP-1071 are missing in Kafka 4.3 and also in HMB: static members, warm-up tasks, offsets of tasks, and
regular expressions for source topics. In Kafka 4.3 and in HMB, a group keeps its first topology until the group is
deleted.

Source: KIP-1071; Kafka's `StreamsGroup`, `GroupMetadataManager` (streamsGroup...).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hmb.coordinator.cluster_topics import ClusterTopics, existing_topics, metadata_hash
from hmb.coordinator.group import Commit, unloaded
from hmb.coordinator.member_memory import subscription_size
from hmb.coordinator.modern.group import LEAVES, ModernGroup
from hmb.coordinator.streams.assignor import StickyAssignor
from hmb.coordinator.streams.endpoints import endpoints_of
from hmb.coordinator.streams.heartbeat import owned_by
from hmb.coordinator.streams.member import StreamsMember, TaskOwners, TaskTarget
from hmb.coordinator.streams.settings import StreamsGroupSettings
from hmb.coordinator.streams.state import INCOMPLETE, StreamsState
from hmb.coordinator.streams.states import STREAMS_GROUP_STATES
from hmb.coordinator.streams.tasks import TaskId, Tasks, task_ids
from hmb.coordinator.streams.topics import ConfiguredTopology, InternalTopic, configure
from hmb.coordinator.streams.topology import Topology, all_topics, is_same, reader_of, size_of, topology_of
from hmb.protocol.enums import JOIN_EPOCH, GroupType, StreamsStatus
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

Status = StreamsGroupHeartbeatResponse.Status


class HeartbeatResult(NamedTuple):
    """The response to a heartbeat, and the internal topics that the broker must create now."""

    response: StreamsGroupHeartbeatResponse
    missing: tuple[InternalTopic, ...] = ()


class StreamsGroup(ModernGroup[StreamsState, StreamsGroupSettings]):
    """One streams group, which handles the requests of its members.

    - `state` stores the members, the epochs, the target assignment and the topology.
    - `_configured` is the newest result of the topic check: whether the cluster's topics fit the topology. It is
      None before the first check.
    - `_version` is the newest version of `ClusterTopics` for which `_configured` is known to be correct.
    - `_delay_end` is the time (ms) until which the group waits for more members before it assigns tasks. It is None
      if the group is not waiting.
    """

    kind = GroupType.STREAMS
    group_states = STREAMS_GROUP_STATES
    state_class = StreamsState

    def __init__(
        self,
        group_id: str,
        settings: Callable[[str], StreamsGroupSettings],
        topics: ClusterTopics,
        clock: Callable[[], int],
    ) -> None:
        super().__init__(group_id, settings, topics, clock)
        self._configured: ConfiguredTopology | None = None
        self._version, self._hash = 0, 0  # not used while `_configured` is None
        self._delay_end: int | None = None
        self._endpoint_epoch = 0  # increases when a member that has an address joins or gets a new assignment
        self._shutdown_by: str | None = None  # the member that has asked the whole application to stop

    # -- StreamsGroupHeartbeat

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str, now: int
    ) -> HeartbeatResult:
        """Handle a heartbeat that `check_heartbeat` has accepted, and return the result.

        If this method raises KafkaError, the group is unchanged.
        """
        if self.is_unloaded:
            raise unloaded(self.group_id, ErrorCode.NOT_COORDINATOR)
        if request.member_epoch < 0:
            return HeartbeatResult(self._leave(request, now))
        settings, owned = self._settings(self.group_id), owned_by(request)
        before = self._before(request, owned, settings.max_size)
        topology = self._topology_after(request.topology)
        configured = self._configure(topology)
        if configured.is_ready and owned is not None:
            configured.check_tasks(owned.active | owned.standby)
        # All checks are above this line, so an error in a check leaves the group unchanged.
        if self.is_empty and settings.initial_delay and self._delay_end is None:
            self._delay_end = now + settings.initial_delay
        member = before.updated(request, client_id, client_host)
        self.deadlines.start_session(member.member_id, settings.session_timeout, now)
        is_new_group = self.state.topology is None
        self._store(before, member, topology, configured, settings)
        delay = self._assign_if_due(configured, settings)
        after = self._reconcile(member, owned, now)
        if request.shutdown_application:
            self._shutdown_by = self._shutdown_by or after.member_id
        self.state.finish()
        response = StreamsGroupHeartbeatResponse(
            member_id=after.member_id, member_epoch=after.epoch, heartbeat_interval_ms=settings.heartbeat_interval
        )
        response.status = [*_stale(member, topology), *delay, *self._problems(configured)]
        if request.member_epoch == JOIN_EPOCH or after.assigned != before.assigned:
            response.active_tasks = task_ids(after.assigned.active)
            response.standby_tasks = task_ids(after.assigned.standby)
            response.warmup_tasks = []
            self._endpoint_epoch += after.endpoint is not None
        self._put_endpoints(response, request.endpoint_information_epoch, after, is_new_group)
        return HeartbeatResult(response, configured.missing)

    def _before(self, request: StreamsGroupHeartbeatRequest, owned: Tasks | None, max_size: int) -> StreamsMember:
        """Return the member's state before the request, or a new member if the client is joining the group.

        Raises KafkaError if the client is joining and the group is full. Also raises KafkaError if the member's id or
        epoch is wrong.
        """
        joins = request.member_epoch == JOIN_EPOCH
        if joins:
            self.state.check_not_full(self.kind, max_size)
        if joins and request.member_id not in self.state.members:
            return StreamsMember(request.member_id)
        member = self.state.known(request.member_id)
        member.check_epoch(request.member_epoch, owned)
        return member

    def _topology_after(self, requested: StreamsGroupHeartbeatRequest.Topology | None) -> Topology:
        """Return the group's topology, or the topology in the heartbeat if the group has none yet.

        Raises INVALID_REQUEST if the heartbeat contains a different topology. However, a topology with an older epoch
        than the group's is ignored.
        """
        known = self.state.topology
        if requested is None:
            assert known is not None, "a member has joined without a topology"
            return known
        new = topology_of(requested)
        if known is None or is_same(known, new):
            return new
        if known.epoch > new.epoch:
            return known
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")

    def _configure(self, topology: Topology) -> ConfiguredTopology:
        """Check whether the cluster's topics fit the topology. If no topic has changed, return the last result.

        Raises KafkaError with STREAMS_INVALID_TOPOLOGY.
        """
        version = self._topics.version  # read first, so that a change during this method causes another check
        if self._configured is None or version != self._version:
            names = all_topics(topology.subtopologies)
            found = metadata_hash(existing_topics(self._topics, names))
            if self._configured is None or found != self._hash:
                self._configured = configure(topology, self._topics)
            self._version, self._hash = version, found
        return self._configured

    def _store(
        self,
        before: StreamsMember,
        member: StreamsMember,
        topology: Topology,
        configured: ConfiguredTopology,
        settings: StreamsGroupSettings,
    ) -> None:
        """Store the member and the topology. Increase the group epoch if the group needs a new target assignment."""
        if member != before:
            self.state.put_metadata(member)
        if self.state.topology is None:
            self.state.set_topology(topology)
        validated = topology.epoch if configured.is_ready else INCOMPLETE
        found = (self._hash, validated, settings.of_assignment)
        if member != before or found != (self.state.metadata_hash, self.state.validated_epoch, self.state.configs):
            _, self.state.validated_epoch, self.state.configs = found
            self.state.increase_epoch(self._hash)

    def _problems(self, configured: ConfiguredTopology) -> list[Status]:
        found = []
        if configured.problem is not None:
            found.append(_status(configured.problem.status, configured.problem.detail))
        if self._shutdown_by is not None:
            text = f"Streams group member {self._shutdown_by} encountered a fatal error and requested a shutdown"
            found.append(_status(StreamsStatus.SHUTDOWN_APPLICATION, f"{text} for the entire application."))
        return found

    def _put_endpoints(
        self, response: StreamsGroupHeartbeatResponse, known_epoch: int, member: StreamsMember, is_new_group: bool
    ) -> None:
        """Add the addresses of all members to the response, unless `member` already knows the newest addresses."""
        if self._endpoint_epoch != known_epoch and self.state.topology is not None:
            others = [each for each in self.state.members.values() if each.member_id != member.member_id]
            addresses = endpoints_of([*others, member], self.state.topology, self._topics)
            response.partitions_by_user_endpoint = addresses
        if is_new_group:  # As in Kafka, the first heartbeat of a group returns the endpoint epoch 0.
            self._endpoint_epoch = 0
        response.endpoint_information_epoch = self._endpoint_epoch

    # -- heartbeat, part 3: the target

    def _assign_if_due(self, configured: ConfiguredTopology, settings: StreamsGroupSettings) -> list[Status]:
        """Compute a new target assignment if the group needs one.

        If the group must first wait, return a status with the reason. Otherwise return an empty list.
        """
        if self._delay_end is not None:
            return [_delayed("initial rebalance delay")]
        if self.state.assignment_epoch >= self.state.epoch:
            return []
        now, last, interval = self._clock(), self.state.assignment_timestamp, settings.assignment_interval
        if last and now < last + interval:
            return [_delayed("assignment interval")]
        for member_id, target in self._targets(configured, settings.standby_replicas).items():
            self.state.set_target(member_id, target)
        self.event_texts.append(f"rebalance to epoch {self.state.epoch}: members, topics or settings have changed")
        self.state.set_assignment_epoch(self.state.epoch, now)
        return []

    def _targets(self, configured: ConfiguredTopology, replicas: int) -> dict[str, Tasks]:
        if not configured.is_ready or self.state.topology is None:
            return dict.fromkeys(self.state.members, Tasks())
        stateful = {each.subtopology_id for each in self.state.topology.subtopologies if each.state_changelog_topics}
        tasks = [TaskId(each, number) for each, count in configured.tasks.items() for number in range(count)]
        copied = [task for task in tasks if task.subtopology in stateful]
        processes = {member_id: member.process_id for member_id, member in self.state.members.items()}
        return StickyAssignor(processes, self.state.targets).assign(tasks, copied, replicas)

    # -- heartbeat, part 4: change the member's own tasks

    def _reconcile(self, member: StreamsMember, owned: Tasks | None, now: int) -> StreamsMember:
        epoch = self.state.assignment_epoch
        if member.is_reconciled_to(epoch):
            return member
        tasks = Tasks() if self._delay_end is not None else self.state.targets.get(member.member_id, Tasks())
        after = member.reconciled(TaskTarget(epoch, tasks, TaskOwners.of(self.state.members.values())), owned)
        if after != member:
            self.state.put_assignment(after)
            self.deadlines.watch_revocation(after, now)
        return after

    # -- removal of members

    def _leave(self, request: StreamsGroupHeartbeatRequest, now: int) -> StreamsGroupHeartbeatResponse:
        self.state.known(request.member_id)
        if request.shutdown_application:
            self._shutdown_by = self._shutdown_by or request.member_id
        self.remove([request.member_id], LEAVES, now)
        self.state.finish()
        return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def _on_removed(self, member_ids: Sequence[str], reason: str) -> None:
        for _ in member_ids:
            self.state.increase_epoch(self.state.metadata_hash)
        if self.is_empty:
            self._shutdown_by = None

    # -- offsets

    def check_commit(self, commit: Commit, now: int) -> None:
        """Check that the sender of a commit is allowed to commit these offsets.

        Raises COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH.
        """
        if self.is_unloaded:
            raise unloaded(self.group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if (commit.epoch < 0 and self.is_empty) or commit.names_no_member:
            return
        self.state.known(commit.member_id).check_commit(commit, self.state.topology)

    def reads(self, topic: str) -> bool:
        known = self.state.topology
        return not self.is_empty and known is not None and reader_of(known, topic) is not None

    # -- deadlines

    def next_deadline(self) -> int | None:
        ends = [end for end in (super().next_deadline(), self._delay_end) if end is not None]
        return min(ends, default=None)

    def _meet_deadlines(self, now: int) -> None:
        super()._meet_deadlines(now)
        if self._delay_end is not None and self._delay_end <= now:
            self._delay_end = None
            if not self.is_empty and self._configured is not None:
                self._assign_if_due(self._configured, self._settings(self.group_id))

    def resume(self, now: int) -> None:
        super().resume(now)
        self._configured = None

    def unload(self) -> None:
        super().unload()
        self._delay_end = None

    # -- admin requests

    @property
    def configured(self) -> ConfiguredTopology | None:
        """The result of the last topic check. It is None until the first check after the group was loaded."""
        return self._configured

    def _is_ready(self) -> bool:
        topology = self.state.topology
        return topology is not None and topology.epoch == self.state.validated_epoch

    @property
    def size(self) -> int:
        """The approximate size of the topology and of the members' tags, in bytes."""
        tags = [text for member in self.state.members.copy().values() for tag in member.tags for text in tag]
        return size_of(self.state.topology) + subscription_size(tags, None)


def _stale(member: StreamsMember, topology: Topology) -> list[Status]:
    if member.topology_epoch >= topology.epoch:
        return []
    text = f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {topology.epoch}."
    return [_status(StreamsStatus.STALE_TOPOLOGY, text)]


def _delayed(cause: str) -> Status:
    return _status(StreamsStatus.ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {cause}.")


def _status(code: StreamsStatus, detail: str) -> Status:
    return Status(status_code=code, status_detail=detail)
