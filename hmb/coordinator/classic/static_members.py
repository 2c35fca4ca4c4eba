"""Static members: a client that restarts keeps its membership and its partitions (KIP-345).

Problem: each deployment of an application restarts all its clients. Each restart causes two rebalances: one when the
client leaves the group, and one when it joins as a new member.

Idea: a *static* member has a group instance id, which stays the same when its client restarts. Other members
are *dynamic*. The coordinator treats a static member differently in two cases:
1. *A member does not send JoinGroup in time.* The coordinator removes a dynamic member
   (`ClassicMembers.not_yet_rejoined`). It keeps a static member until the member's session ends. If no member
   has sent JoinGroup in time, the group waits again for its static members
   (`ClassicMembers.deadline_for_static_members`).
2. *The client of a static member restarts.* The client joins with its group instance id and without a member
   id. The coordinator assigns a new member id, and rejects later requests with the old id (`replace_member`).

If a static member restarts while the group is Stable, and the group's protocol does not change, the group stays
Stable. The member keeps its assignment.

For example, the static member "till-1" has the member id "till-1-0a7f" and partition 2. The client of this member
restarts within the session timeout and joins again. The response contains the new member id "till-1-93c2" and the
current generation. The client then sends SyncGroup and receives partition 2 again. A request with the old id
"till-1-0a7f" fails with FENCED_INSTANCE_ID.

Source: KIP-345, KIP-814.
"""

from __future__ import annotations

from hmb.coordinator.classic.members import Call, reason_of
from hmb.coordinator.classic.older_clients import without_assignment
from hmb.coordinator.classic.rebalance import Rebalance
from hmb.coordinator.classic.state import ClassicState
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def replace_member(
    state: ClassicState, rebalance: Rebalance, call: Call, request: JoinGroupRequest, member_id: str, now: int
) -> None:
    """Give a restarted static member the new id `member_id`. Requests with the old id then fail.

    After the restart, the client may support other protocols (assignors). If the group is Stable and its protocol
    does not change, the group stays Stable, and the member keeps its assignment. Otherwise, a rebalance starts or
    continues.

    If the group stays Stable, the member receives the JoinGroup response only after the new id is on disk. If
    the write fails, the member gets its old id back.
    """
    member = state.members.by_id[state.members.instances[request.group_instance_id or ""]]
    before = member.member_id, member.protocols, member.session_timeout, member.rebalance_timeout
    old_leader = state.members.leader_id
    state.refuse_waiting_calls(member, ErrorCode.FENCED_INSTANCE_ID, member.member_id)
    state.members.rename(member, member_id)
    member.is_new = False
    member.extend_session(now)
    member.update(request)
    rebalance.wait_for_generation(member, call)
    if state.current is not GroupState.STABLE or state.members.select_protocol() != state.protocol:
        rebalance.start(f"static member {request.group_instance_id} has restarted{reason_of(request)}", now)
        return

    def on_stored(error: KafkaError | None, now: int) -> None:
        if state.current is not GroupState.STABLE or member.joining is not call:
            return  # A rebalance has started in the meantime and will answer the request.
        member.joining = None
        # If `error` is None, the new member id is on disk. During the write, the client waited for the JoinGroup
        # response and could not send heartbeats. So its session timeout starts again.
        if error is None:
            member.extend_session(now)
            state.queue_response(call, without_assignment(state.join_response_for(member), call, old_leader))
            return
        state.members.rename(member, before[0])
        _, member.protocols, member.session_timeout, member.rebalance_timeout = before
        member.extend_session(now)
        state.queue_response(call, JoinGroupResponse(error_code=error.code))

    state.queue_write({other.member_id: other.assignment for other in state.members}, on_stored)
