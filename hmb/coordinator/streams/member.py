"""A member of a streams group, and its steps from its current tasks to its target tasks.

A member is one thread of a Kafka Streams application. It moves from its current tasks to its target tasks in
several steps. A member of a KIP-848 group moves to its target partitions in the same steps
(consumer/member.py).

In a streams group, a process must not own the same task twice, because all threads of a process store the
states of their tasks in one directory. The coordinator gives a task to a member only under these conditions:
- The member's process owns the task neither as an active task nor as a standby task.
- If the member gets the task as an active task, no other process owns it as an active task.

For example, a group has the tasks 0_0 and 0_1. In epoch 4, member A owns both tasks, and member B of another
process owns none. In epoch 5, A should own 0_0, and B should own 0_1. A must give up 0_1 before B can get it.
The next table shows four heartbeats, and the epoch and state of the sender after each heartbeat:
    sender   epoch   state             result
    B        5       UnreleasedTasks   0_1 still belongs to A
    A        4       UnrevokedTasks    A must give up 0_1; the response contains only 0_0
    A        5       Stable            A lists only 0_0 in the heartbeat, so 0_1 has no owner
    B        5       Stable            the response contains 0_1

Source: KIP-1071; Kafka's `StreamsGroupMember` and `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hmb.coordinator.group import Commit
from hmb.coordinator.modern.member_epoch import check_commit_version, fenced
from hmb.coordinator.streams.states import STREAMS_MEMBER_STATES, StreamsMemberEvent, StreamsMemberState
from hmb.coordinator.streams.tasks import OwnedTasks, TaskId, Tasks
from hmb.coordinator.streams.topology import Topology, reader_of
from hmb.protocol.enums import GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

NO_TOPOLOGY = -1  # the topology epoch of a member that has not joined yet


class QueryAddress(NamedTuple):
    """The address at which a process answers queries about the states of its tasks."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class TaskOwners:
    """Stores which processes own each task now. A process owns a task until it has given the task up."""

    active: Mapping[TaskId, str]  # task -> process id
    standby: Mapping[TaskId, set[str]]  # task -> process ids

    @classmethod
    def of(cls, members: Iterable[StreamsMember]) -> TaskOwners:
        active: dict[TaskId, str] = {}
        standby: dict[TaskId, set[str]] = defaultdict(set)
        for member in members:
            for owned in (member.assigned, member.revoking):
                active.update(dict.fromkeys(owned.active, member.process_id))
                for task in owned.standby:
                    standby[task].add(member.process_id)
        return cls(active, standby)

    def allow_active(self, task: TaskId, process_id: str) -> bool:
        """Return whether a member of the process may get the active task now.

        This is not possible while a member owns the active task, or while the same process owns a standby copy.
        """
        return task not in self.active and process_id not in self.standby.get(task, ())

    def allow_standby(self, task: TaskId, process_id: str) -> bool:
        """Return whether a member of the process `process_id` may get a standby copy of the task now.

        The result is False while any member of this process owns the task, active or standby.
        """
        return self.active.get(task) != process_id and process_id not in self.standby.get(task, ())


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """The tasks that a member should have, and the processes that own each task now.

    The member's next step depends on both. For example, it must wait for a task that another member still owns.
    """

    epoch: int  # the epoch of the target assignment
    tasks: Tasks
    owners: TaskOwners


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """The state of one member. The object never changes: a change of the member creates a new object.

    The member owns the tasks in `assigned` and the tasks in `revoking`. It runs the tasks in `assigned`. It must
    give up the tasks in `revoking`, but has not yet confirmed this.
    """

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1  # ms
    topology_epoch: int = NO_TOPOLOGY
    process_id: str = ""
    endpoint: QueryAddress | None = None
    tags: tuple[tuple[str, str], ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: OwnedTasks = field(default_factory=OwnedTasks)
    revoking: OwnedTasks = field(default_factory=OwnedTasks)

    def updated(self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str) -> StreamsMember:
        """Return a copy of the member with the values of a heartbeat. A null field of the request changes nothing."""
        timeout, endpoint, tags = request.rebalance_timeout_ms, request.user_endpoint, request.client_tags
        return replace(
            self,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client_id,
            client_host=client_host,
            rebalance_timeout=self.rebalance_timeout if timeout == -1 else timeout,
            topology_epoch=self.topology_epoch if request.topology is None else request.topology.epoch,
            process_id=self.process_id if request.process_id is None else request.process_id,
            endpoint=self.endpoint if endpoint is None else QueryAddress(endpoint.host, endpoint.port),
            tags=self.tags if tags is None else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
        )

    def check_epoch(self, epoch: int, owned: Tasks | None) -> None:
        """Check the member epoch in a heartbeat. `owned` contains the tasks that the heartbeat lists.

        Three epochs are valid:

        - 0
        - the current epoch
        - the previous epoch, if `owned` is not None and contains only tasks that are assigned to the member. A member
          sends this epoch if it has missed the response with the current epoch.

        Raises FENCED_MEMBER_EPOCH for any other epoch.
        """
        if epoch in (0, self.epoch):
            return
        is_previous = epoch == self.previous_epoch and epoch < self.epoch
        if not is_previous or owned is None or not self.assigned.include(owned):
            raise fenced(GroupType.STREAMS, epoch, self.epoch)

    def check_commit(self, commit: Commit, topology: Topology | None) -> None:
        """Check that this member is allowed to commit the offsets in `commit`.

        Raises UNSUPPORTED_VERSION if the version of the request is too old to contain a member epoch. Raises
        STALE_MEMBER_EPOCH if the member epoch in the request is not valid.

        The current epoch of the member is valid. An older epoch is also valid if the member has owned the tasks of
        all partitions in `commit` since that epoch (KIP-1251).
        """
        check_commit_version(GroupType.STREAMS, commit)
        if commit.epoch == self.epoch:
            return
        owned = {**self.revoking.active, **self.assigned.active}

        def is_too_old(topic: str, partition: int) -> bool:
            reader = None if topology is None else reader_of(topology, topic)
            since = None if reader is None else owned.get(TaskId(reader, partition))
            return since is None or commit.epoch < since

        if commit.epoch > self.epoch or any(is_too_old(*each) for each in commit.offsets):
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, f"The member epoch is {self.epoch}, not {commit.epoch}.")

    @property
    def revocation_timeout(self) -> int | None:
        """The time limit (ms) for giving up tasks, or None if the member has no tasks to give up."""
        return self.rebalance_timeout if self.state is StreamsMemberState.UNREVOKED_TASKS else None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is StreamsMemberState.STABLE and self.epoch == epoch

    def reconciled(self, target: TaskTarget, owned: Tasks | None) -> StreamsMember:
        """Return the member after one step towards the tasks that it should have (`target`).

        `owned` contains the tasks that the member lists in its heartbeat. None means that the heartbeat lists no tasks,
        because they have not changed.
        """
        match self.state:
            case StreamsMemberState.STABLE if self.epoch == target.epoch:
                return self
            case StreamsMemberState.UNREVOKED_TASKS if owned is None or self.revoking.overlap(owned):
                return self
            case StreamsMemberState.UNREVOKED_TASKS:
                return self._next(target, owned, self.epoch + 1)
        return self._next(target, owned, self.epoch)

    def _next(self, target: TaskTarget, owned: Tasks | None, waiting_epoch: int) -> StreamsMember:
        """Return the member after one step towards the tasks in `target`.

        If the member must first give up tasks, the member's epoch becomes `waiting_epoch` in this step. Otherwise, the
        epoch becomes the target's epoch.
        """
        wanted, active = target.tasks, self.assigned.active
        kept = {task: epoch for task, epoch in active.items() if task in wanted.active}
        kept_standby = self.assigned.standby & wanted.standby
        revoking = OwnedTasks(
            {task: epoch for task, epoch in active.items() if task not in kept}, self.assigned.standby - kept_standby
        )
        if revoking and (owned is None or revoking.overlap(owned)):
            return self._moved(StreamsMemberEvent.MUST_REVOKE, waiting_epoch, OwnedTasks(kept, kept_standby), revoking)
        missing, missing_standby = wanted.active - kept.keys(), wanted.standby - kept_standby
        free = {task for task in missing if target.owners.allow_active(task, self.process_id)}
        free_standby = {task for task in missing_standby if target.owners.allow_standby(task, self.process_id)}
        is_complete = free == missing and free_standby == missing_standby
        assigned = OwnedTasks({**kept, **dict.fromkeys(free, target.epoch)}, kept_standby | free_standby)
        event = StreamsMemberEvent.REACHES_TARGET if is_complete else StreamsMemberEvent.MUST_WAIT
        return self._moved(event, target.epoch, assigned, OwnedTasks())

    def _moved(
        self, event: StreamsMemberEvent, epoch: int, assigned: OwnedTasks, revoking: OwnedTasks
    ) -> StreamsMember:
        state = STREAMS_MEMBER_STATES.next(self.state, event)
        return replace(
            self, state=state, epoch=epoch, previous_epoch=self.epoch, assigned=assigned, revoking=revoking
        )
