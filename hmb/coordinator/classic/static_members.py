"""Static members: a client that restarts keeps its membership and its partitions (KIP-345).

Problem: each deployment restarts all clients of a group, and each restart causes two rebalances. The client leaves the
group and joins it as a new member.

Idea: a *static* member has a group instance id, which stays the same after a restart of its client. A static member
differs from other members in two cases:

1. A rebalance removes the members that have not joined in time. It keeps static members until their sessions end
   (`ClassicMembers.late`). If all remaining members are absent static members, the group waits once more
   (`ClassicMembers.wait_for_absent`).
2. A restarted client joins with its group instance id and without a member id. The coordinator assigns a new member id
   and fences the old one (`replace_member`). A Stable group stays Stable, and the member keeps its assignment.

For example, the static member "till-1" has the member id "till-1-0a7f" and partition 2. Its client restarts within the
session timeout and joins again. The response contains the member id "till-1-93c2" and the current generation. The
SyncGroup that follows returns partition 2. A request with the id "till-1-0a7f" fails with FENCED_INSTANCE_ID.

Source: KIP-345, KIP-814.
"""

from __future__ import annotations

from hmb.coordinator.classic.members import Call, ClassicMember
from hmb.coordinator.classic.older_clients import without_assignment
from hmb.coordinator.classic.rebalance import ClassicRebalance
from hmb.coordinator.classic.states import ClassicGroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def replace_member(
    group: ClassicRebalance, call: Call, request: JoinGroupRequest, member_id: str, because: str, now: int
) -> None:
    """Give a static member that has restarted a new member id, and fence its old id.

    A Stable group that would choose the same protocol stays Stable and keeps the assignment. Any other group starts a
    rebalance, and `because` is its reason in the broker's log.
    """
    member = group.members.by_id[group.members.instances[request.group_instance_id or ""]]
    before = member.member_id, member.protocols, member.session_timeout, member.rebalance_timeout
    old_leader = group.members.leader_id
    group.dismiss(member, ErrorCode.FENCED_INSTANCE_ID, member.member_id)
    _rename(group, member, member_id)
    member.is_new = False
    member.extend_session(now)
    member.update(request)
    group.wait_for_generation(member, call)
    if group.state is not ClassicGroupState.STABLE or group.members.select_protocol() != group.protocol:
        group.rebalance(because, now)
        return

    def then(error: KafkaError | None, now: int) -> None:
        if group.state is not ClassicGroupState.STABLE or member.joining is not call:
            return  # A rebalance has started since the request, and sends the response.
        member.joining = None
        if error is None:
            group.answer(call, without_assignment(group.generation_for(member), call, old_leader))
            return
        _rename(group, member, before[0])
        _, member.protocols, member.session_timeout, member.rebalance_timeout = before
        group.answer(call, JoinGroupResponse(error_code=error.code))

    group.write({other.member_id: other.assignment for other in group.members}, then)


def _rename(group: ClassicRebalance, member: ClassicMember, member_id: str) -> None:
    if member.member_id in group.unsynced:
        group.unsynced.remove(member.member_id)
        group.unsynced.add(member_id)
    group.members.rename(member, member_id)
