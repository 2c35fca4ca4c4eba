"""Describes a classic group for the response to DescribeGroups."""

from __future__ import annotations

from hmb.coordinator.classic.state import ClassicState
from hmb.protocol.enums import GroupState
from hmb.protocol.messages.describe_groups import DescribeGroupsResponse

DescribedGroup = DescribeGroupsResponse.DescribedGroup


def describe_classic_group(state: ClassicState) -> DescribedGroup:
    """Return the state and the members of a classic group.

    The result contains the group's protocol and the members' metadata only if the group is Stable.
    """
    protocol = state.protocol if state.current is GroupState.STABLE else None
    return DescribedGroup(
        group_id=state.group_id,
        group_state=state.current.value,
        protocol_type=state.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroup.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in state.members
        ],
    )
