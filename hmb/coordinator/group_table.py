"""The table of groups: the threads of all connections find, create and remove groups here.

A thread that looks up one group takes no lock. A thread that creates a group takes the lock of the table, so two
threads can never create two groups with the same id. When the broker stops, it calls `close`, and the table then
creates no more groups.

Suppose that two consumers join the new group "readers" at the same time. The first thread that takes the
table's lock creates the group. The other thread finds this group in the table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from hmb.coordinator.group import Group
from hmb.coordinator.group_runner import GroupRunner
from hmb.coordinator.journal.writing import Journal
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_groups import ListGroupsResponse

ListedGroup = ListGroupsResponse.ListedGroup


class GroupTable:
    """All groups by their ids: at most one group for each id. After `close`, no group is added. Thread-safe."""

    def __init__(self, make: Callable[[str], GroupRunner], journal: Journal) -> None:
        """Create an empty table. The function `make` creates a group with a given id."""
        self._make = make
        self._journal = journal
        # This lock guards `_groups` and `_closed`. A thread that holds it never takes a group's lock.
        self._lock = threading.Lock()
        self._groups: dict[str, GroupRunner] = {}
        self._closed = False

    def all(self) -> list[GroupRunner]:
        """Return all groups."""
        with self._lock:
            return list(self._groups.values())

    def get(self, group_id: str) -> GroupRunner | None:
        """Return the group with this id, or None if no such group exists."""
        return self._groups.get(group_id)

    def find(self, group_id: str) -> GroupRunner:
        """Return the group with this id. Raises GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        self._journal.check_coordinates(group_id)
        runner = self.get(group_id)
        if runner is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return runner

    def find_or_make(self, group_id: str) -> GroupRunner:
        """Return the group with this id, or create it. Raises COORDINATOR_NOT_AVAILABLE after `close`."""
        with self._lock:
            if self._closed:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker is stopping")
            if group_id not in self._groups:
                self._groups[group_id] = self._make(group_id)
            return self._groups[group_id]

    def remove(self, runner: GroupRunner) -> None:
        """Remove the group `runner`. If the table now contains a newer group with the same id, do nothing."""
        group_id = runner.machine.group_id
        with self._lock:
            if self._groups.get(group_id) is runner:  # After `clear`, a new group can have this id.
                del self._groups[group_id]

    def clear(self) -> list[GroupRunner]:
        """Remove all groups and return them."""
        with self._lock:
            groups, self._groups = self._groups, {}
        return list(groups.values())

    def close(self) -> None:
        """Close the table: from now on, it creates no more groups."""
        with self._lock:
            self._closed = True


def check_group_id(group_id: str) -> None:
    """Raise INVALID_GROUP_ID if the group id is empty."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the id of a group cannot be empty")


def listed(groups: Iterable[Group], states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
    """Return the groups that have one of these states and one of these types.

    If `states` is empty, every state matches. If `types` is empty, every type matches. Upper and lower case
    are the same: "STABLE" matches "Stable".
    """
    wanted_states = {state.strip().lower() for state in states}
    wanted_kinds = {kind.lower() for kind in types}
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state_name,
            group_type=group.kind,
        )
        for group in groups
        if not wanted_states or group.state_name.lower() in wanted_states
        if not wanted_kinds or group.kind in wanted_kinds
    ]
