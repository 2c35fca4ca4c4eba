"""Tests of the sticky assignor of streams groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hmb.coordinator.streams.assignor import StickyAssignor
from hmb.coordinator.streams.tasks import TaskId, Tasks

Targets = dict[str, Tasks]


def all_tasks(partitions: int, *subtopologies: str) -> list[TaskId]:
    return [TaskId(each, number) for each in subtopologies for number in range(partitions)]


def active(targets: Targets) -> dict[str, list[str]]:
    return {member: sorted(map(str, target.active)) for member, target in targets.items()}


def test_tasks_are_divided_evenly_and_stay_with_their_owners() -> None:
    tasks = all_tasks(4, "0")
    first = StickyAssignor({"a": "p"}, {}).assign(tasks, [], 0)
    assert active(first) == {"a": ["0_0", "0_1", "0_2", "0_3"]}
    both = StickyAssignor({"a": "p", "b": "q"}, first).assign(tasks, [], 0)
    assert active(both) == {"a": ["0_0", "0_1"], "b": ["0_2", "0_3"]}
    last = StickyAssignor({"b": "q"}, both).assign(tasks, [], 0)
    assert active(last) == {"b": ["0_0", "0_1", "0_2", "0_3"]}


def test_a_member_with_a_copy_takes_over_the_task() -> None:
    tasks = all_tasks(3, "0")
    members = {"a": "p", "b": "q", "c": "r"}
    before = StickyAssignor(members, {}).assign(tasks, tasks, 1)
    copies = {task: member for member, target in before.items() for task in target.standby}
    assert copies.keys() == set(tasks)
    del members["a"]
    after = StickyAssignor(members, before).assign(tasks, tasks, 1)
    (orphan,) = before["a"].active
    assert orphan in after[copies[orphan]].active


@given(
    processes=st.lists(st.sampled_from("pqr"), min_size=1, max_size=6),
    left=st.sets(st.integers(0, 5), max_size=5),
    partitions=st.integers(1, 5),
    replicas=st.integers(0, 2),
)
def test_each_task_has_one_active_owner_and_copies_in_other_processes(
    processes: list[str], left: set[int], partitions: int, replicas: int
) -> None:
    members = {f"m{number}": process for number, process in enumerate(processes)}
    tasks, stateful = all_tasks(partitions, "0", "1"), all_tasks(partitions, "1")
    targets = StickyAssignor(members, {}).assign(tasks, stateful, replicas)
    stays = {member: process for member, process in members.items() if int(member[1:]) not in left} or members
    after = StickyAssignor(stays, targets).assign(tasks, stateful, replicas)
    for owners, found in ((members, targets), (stays, after)):
        assert found.keys() == owners.keys()
        assert sorted(task for target in found.values() for task in target.active) == sorted(tasks)
        for task in stateful:
            holders = [owners[member] for member, it in found.items() if task in it.active or task in it.standby]
            assert len(holders) == len(set(holders)), "a process owns a task twice"
            assert len(holders) == min(1 + replicas, len(set(owners.values())))
