"""Converts a classic group to a record of `__consumer_offsets`, and back.

The record of a classic group contains the generation of the group, its members, and their assignments. After a
restart of the broker, the coordinator restores the group from this record, so the group needs no rebalance. The
session timeout of each member starts again from zero. A member can support several protocols, but the record
contains only the member's metadata for the protocol that the group uses.

Source: Kafka's `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hmb.coordinator.classic.members import ClassicMember, ClassicMembers
from hmb.coordinator.journal.records import GroupMetadataValue, encode_value

MemberMetadata = GroupMetadataValue.MemberMetadata


def encode_group(
    protocol_type: str | None,
    protocol: str | None,
    generation: int,
    state_timestamp: int,
    members: ClassicMembers,
    assignments: Mapping[str, bytes],
) -> bytes:
    """Return the value of a classic group's record in the journal.

    `assignments` maps member ids to assignments. The coordinator sends an assignment to its member only after this
    record is stored.
    """
    value = GroupMetadataValue(
        protocol_type=protocol_type or "",
        generation=generation,
        protocol=protocol,
        leader=members.leader_id,
        current_state_timestamp=state_timestamp,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout,
                session_timeout=member.session_timeout,
                subscription=member.metadata(protocol or ""),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in members
        ],
    )
    return encode_value(value)


def decode_members(value: GroupMetadataValue) -> ClassicMembers:
    """Return the members of a classic group from the value of its record in the journal."""
    members = ClassicMembers()
    for member in value.members:
        rebalance_timeout = member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout
        members.add(
            ClassicMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout,
                rebalance_timeout,
                [(value.protocol or "", bytes(member.subscription))],
                assignment=bytes(member.assignment),
            )
        )
    if value.leader is not None and value.leader in members:
        members.leader_id = value.leader
    return members
