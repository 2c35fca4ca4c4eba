"""The sticky assignor: it decides which members of a streams group own which tasks.

In a streams group, each task has one *active* owner: the member (a thread) that processes the task. Other members can
keep *standby* copies of the task's state. A new owner without a copy must first read the state from a changelog topic,
which takes long. The assignor therefore follows three rules. Rule 1 is the most important:
1. Each task has one active owner, and all members own about the same number of tasks.
2. Each task stays with its owner. If the owner leaves the group, a member with a standby copy becomes the owner.
3. The owner of a task and the members with standby copies each belong to a different process.

The assignor knows the *load* of each process, which is the number of its tasks divided by the number of its members. If
a task had no owner before, the assignor chooses the process with the smallest load. In this process, the member with
the fewest tasks gets the task.

For example, member A owns the active tasks 0_0 to 0_3. When member B joins, each member may own at most 2 tasks. A
keeps 0_0 and 0_1, and B gets 0_2 and 0_3. When A leaves, B keeps 0_2 and 0_3, and also gets 0_0 and 0_1.

Source: KIP-1071; Kafka's `StickyTaskAssignor`.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from hmb.coordinator.streams.tasks import TaskId, Tasks


@dataclass(slots=True)
class _Owner:
    member_id: str
    process: _Process
    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)

    @property
    def size(self) -> int:
        return len(self.active) + len(self.standby)


@dataclass(slots=True)
class _Process:
    """A process of the application, with its members. `tasks` contains the tasks of all its members."""

    process_id: str
    owners: list[_Owner] = field(default_factory=list)
    tasks: set[TaskId] = field(default_factory=set)

    @property
    def load(self) -> float:
        return sum(owner.size for owner in self.owners) / len(self.owners)

    @property
    def smallest(self) -> _Owner:
        return min(self.owners, key=lambda owner: owner.size)


class _Quota:
    """Computes `limit`, the largest number of tasks that a member may own, so that the tasks are divided evenly.

    The limit is the average number of tasks of a member, rounded up. For example, if 3 members share 7 tasks, the limit
    is 3. When one member owns 3 tasks, 4 tasks remain for 2 members, so the limit becomes 2.
    """

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.limit = ceil(tasks / members)

    def count(self, size: int) -> None:
        """Count a new task of a member that now owns `size` tasks.

        If `size` equals the maximum `limit`, this member gets no more tasks. The method then computes a new `limit` for
        the remaining tasks and members.
        """
        if size == self.limit:
            self._members -= 1
            self._tasks -= size
            self.limit = ceil(self._tasks / self._members) if self._members else 0


class StickyAssignor:
    """Computes a new target assignment of a streams group. Each object is used once, for one call of `assign`."""

    def __init__(self, members: Mapping[str, str], before: Mapping[str, Tasks]) -> None:
        """Prepare the assignment of tasks to `members`, which maps each member id to the id of the member's process.

        `before` maps each member id to the tasks in the member's current target assignment.
        """
        processes: dict[str, _Process] = {}
        self._owners: dict[str, _Owner] = {}
        for member_id, process_id in sorted(members.items()):
            process = processes.setdefault(process_id, _Process(process_id))
            self._owners[member_id] = owner = _Owner(member_id, process)
            process.owners.append(owner)
        self._processes = [processes[process_id] for process_id in sorted(processes)]
        self._was_active: dict[TaskId, _Owner] = {}
        self._was_standby: dict[TaskId, list[_Owner]] = defaultdict(list)
        for member_id, owner in self._owners.items():
            for task in before.get(member_id, Tasks()).active:
                self._was_active[task] = owner
            for task in before.get(member_id, Tasks()).standby:
                self._was_standby[task].append(owner)

    def assign(self, tasks: Sequence[TaskId], stateful: Iterable[TaskId], replicas: int) -> dict[str, Tasks]:
        """Return the new target tasks of each member.

        Each task in `stateful` gets `replicas` standby copies. The active task and its standby copies must be in
        different processes. So with 3 processes, a task gets at most 2 standby copies, even if `replicas` is greater.
        """
        copied = list(stateful) if replicas else []
        self._active_quota = _Quota(len(tasks), len(self._owners))
        self._quota = _Quota(len(tasks) + len(copied) * replicas, len(self._owners))
        self._assign_active(tasks)
        self._assign_standby(copied, replicas)
        return {
            member_id: Tasks(frozenset(owner.active), frozenset(owner.standby))
            for member_id, owner in self._owners.items()
        }

    def _assign_active(self, tasks: Iterable[TaskId]) -> None:
        left = sorted(tasks, key=lambda task: (task.partition, task.subtopology))
        left = [task for task in left if not self._keep(task, self._was_active.get(task))]
        left = [task for task in left if not self._keep(task, self._least_loaded(self._was_standby.get(task, ())))]
        by_load = [(process.load, number, process) for number, process in enumerate(self._processes)]
        heapq.heapify(by_load)
        for task in sorted(left):
            _, number, process = by_load[0]
            self._add_active(process.smallest, task)
            heapq.heapreplace(by_load, (process.load, number, process))

    def _keep(self, task: TaskId, owner: _Owner | None) -> bool:
        """Assign an active task to `owner`, which already has the task's state. Return whether this was possible.

        It is not possible if `owner` is None (no member has the state), or if `owner` already has enough tasks.
        """
        if owner is None or owner.size >= self._active_quota.limit:
            return False
        self._add_active(owner, task)
        return True

    def _add_active(self, owner: _Owner, task: TaskId) -> None:
        owner.active.add(task)
        owner.process.tasks.add(task)
        self._active_quota.count(owner.size)
        self._quota.count(owner.size)

    def _assign_standby(self, tasks: Iterable[TaskId], replicas: int) -> None:
        left: list[TaskId] = []
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology), reverse=True):
            for copy in range(replicas):
                if (owner := self._known_standby(task)) is None:
                    left += [task] * (replicas - copy)
                    break
                self._add_standby(owner, task)
        for task in sorted(left, reverse=True):
            free = [process for process in self._processes if task not in process.tasks]
            if free:
                self._add_standby(min(free, key=lambda process: process.load).smallest, task)

    def _known_standby(self, task: TaskId) -> _Owner | None:
        """Return a previous owner of `task` that can get a standby copy of the task, or None.

        A previous owner already has the state of the task. The method checks two members:

        1. the previous active owner
        2. the least loaded of the previous standby owners

        The result is the first member that owns fewer tasks than `_quota.limit`, the maximum for one member. The
        method ignores each owner whose process already has the task in the new assignment.
        """
        before = [self._was_active[task]] if task in self._was_active else []
        for known in (before, self._was_standby.get(task, [])):
            owner = self._least_loaded([each for each in known if task not in each.process.tasks])
            if owner is not None and owner.size < self._quota.limit:
                return owner
        return None

    def _add_standby(self, owner: _Owner, task: TaskId) -> None:
        owner.standby.add(task)
        owner.process.tasks.add(task)
        self._quota.count(owner.size)

    @staticmethod
    def _least_loaded(owners: Sequence[_Owner]) -> _Owner | None:
        return min(owners, key=lambda owner: (owner.process.load, owner.size), default=None)
