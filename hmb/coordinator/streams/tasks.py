"""Tasks: the units of work that a streams group divides among its members.

A *subtopology* is a part of the application whose processors pass records to each other directly. The subtopology is
executed once for each partition of its source topics. Each execution is a *task*. For example, subtopology "0" reads a
topic with 3 partitions, so it has the tasks 0_0, 0_1 and 0_2.

A member can own a task in one of two roles:
- The owner of an *active* task processes the records. A task has at most one such owner.
- The owner of a *standby* task only copies the state of the task from its changelog topic. If the owner of the active
  task fails, this member can take over the task quickly.

KIP-1071 also describes *warm-up* tasks. Kafka 4.3 does not assign them yet, and refuses a heartbeat that lists one. HMB
does the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hmb.protocol.messages.streams_group_heartbeat import TaskIds


class TaskId(NamedTuple):
    """The id of a task: the id of a subtopology, and a partition number.

    The task reads the partition with this number in each source topic of the subtopology. For example, task 0_2
    reads partition 2 of each source topic of subtopology "0".
    """

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class TasksOfSubtopology(Protocol):
    """The tasks of one subtopology. Journal records and heartbeat requests contain such objects."""

    subtopology_id: str
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one member, grouped by role (active or standby).

    They are either the target tasks, which the coordinator has chosen for the member, or the tasks in the member's
    heartbeat.
    """

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class OwnedTasks:
    """The tasks that the coordinator has given to one member.

    `active` maps each active task to the epoch in which the member received the task. `standby` contains only the
    ids of the standby tasks.
    """

    active: Mapping[TaskId, int] = field(default_factory=dict)
    standby: frozenset[TaskId] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.active or self.standby)

    def overlap(self, tasks: Tasks) -> bool:
        """Return whether this object and `tasks` share a task: one that is active in both, or standby in both."""
        return not (tasks.active.isdisjoint(self.active) and tasks.standby.isdisjoint(self.standby))

    def include(self, tasks: Tasks) -> bool:
        """Return whether `active` contains all active tasks in `tasks`, and `standby` all standby tasks."""
        return tasks.active <= self.active.keys() and tasks.standby <= self.standby


def tasks_in(subtopologies: Iterable[TasksOfSubtopology]) -> frozenset[TaskId]:
    """Return the ids of all tasks in `subtopologies`. Each element lists the tasks of one subtopology.

    For example, the element with the id "0" and the partitions [0, 1] contains the tasks 0_0 and 0_1.
    """
    return frozenset(TaskId(each.subtopology_id, number) for each in subtopologies for number in each.partitions)


def numbers_by_subtopology(tasks: Iterable[TaskId]) -> dict[str, list[int]]:
    """Return a dict that maps the id of each subtopology to the sorted partition numbers of its tasks."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for task in sorted(tasks):
        numbers[task.subtopology].append(task.partition)
    return numbers


def task_ids(tasks: Iterable[TaskId]) -> list[TaskIds]:
    """Return the tasks, grouped by subtopology: one `TaskIds` object for each subtopology.

    For example, the tasks 0_0 and 0_1 become one `TaskIds` with the subtopology id "0" and the partitions [0, 1].
    """
    return [
        TaskIds(subtopology_id=subtopology, partitions=numbers)
        for subtopology, numbers in numbers_by_subtopology(tasks).items()
    ]
