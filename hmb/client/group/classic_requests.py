"""Makes the requests of a member of a classic group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

from __future__ import annotations

from collections.abc import Mapping

from hmb.client.group.interface import GroupMetadata, MemberSettings
from hmb.client.group.member_metadata import JoinProtocol
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest


def join_request(settings: MemberSettings, member_id: str, protocols: list[JoinProtocol]) -> JoinGroupRequest:
    """Return the request to join the group. `member_id` is "" until the coordinator has assigned an id."""
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=int(settings.session_timeout * 1000),
        rebalance_timeout_ms=int(settings.max_poll_interval * 1000),
        member_id=member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=CONSUMER,
        protocols=protocols,
    )


def sync_request(member: GroupMetadata, protocol: str, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
    """Return a SyncGroup request. A member sends it to ask the coordinator for the assigned partitions.

    If the member is the group leader and has assigned the partitions, `assignments` maps the id of each member of
    the group to the partitions of that member. Otherwise, `assignments` is empty.
    """
    one = SyncGroupRequest.SyncGroupRequestAssignment
    return SyncGroupRequest(
        group_id=member.group_id,
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        protocol_type=CONSUMER,
        protocol_name=protocol,
        assignments=[one(member_id=member_id, assignment=it) for member_id, it in assignments.items()],
    )


def heartbeat_request(member: GroupMetadata) -> HeartbeatRequest:
    """Return the request with which a member shows the coordinator that it is alive."""
    return HeartbeatRequest(
        group_id=member.group_id,
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
    )


def leave_request(member: GroupMetadata, reason: str) -> LeaveGroupRequest:
    """Return the request with which a member leaves the group."""
    leaving = LeaveGroupRequest.MemberIdentity(member_id=member.member_id, reason=reason)
    return LeaveGroupRequest(group_id=member.group_id, members=[leaving])
