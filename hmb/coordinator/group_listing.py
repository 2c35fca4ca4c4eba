"""The filter of ListGroups: selects groups by their state and their type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hmb.coordinator.group import Group
from hmb.protocol.messages.list_groups import ListGroupsResponse

ListedGroup = ListGroupsResponse.ListedGroup


def listed(groups: Iterable[Group], states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
    """Return the groups that have one of these states and one of these types.

    An empty list allows all states or all types. The comparison ignores upper and lower case.
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
