"""Lets members of a KIP-848 group use the classic requests JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The classic protocol has generations, leaders and rebalances, but KIP-848 has epochs and target assignments.
The next table shows how a KIP-848 group treats a member that uses the classic protocol:
    generation      The generation in requests and responses is the epoch of this member. Other members can have
                    other epochs.
    JoinGroup       The request lists the partitions that the member owns. The member takes one step towards its
                    target assignment (consumer/member.py). The coordinator responds without waiting for other
                    members. No member is the leader.
    SyncGroup       The response contains the current assignment of the member.
    Heartbeat       The request extends the session. If the response is REBALANCE_IN_PROGRESS, the member must
                    send JoinGroup again.
    LeaveGroup      The request can remove members of both protocols.

The response to a Heartbeat request can ask the member to join again. The member must then send JoinGroup
within its rebalance timeout (the join deadline). The coordinator asks for this in four cases:
1. The assignment epoch of the group is newer than the epoch of the member.
2. The member must give up partitions. With its next JoinGroup request, the member confirms that it has given
   them up.
3. The member has waited for partitions that other members owned, and these partitions are free now.
4. The group needs a new target assignment, and all members of the group use the classic protocol. In this
   case, only a JoinGroup request can start the computation of the target assignment.

For example, a member with a cooperative assignor owns partitions 0 and 1 in epoch 7. The member's target assignment
for epoch 8 contains only partition 0. Each line shows a request and its response:
    Heartbeat, generation 7         REBALANCE_IN_PROGRESS: the target has changed
    JoinGroup, owns {0, 1}          generation 7: the member must give up partition 1 first
    SyncGroup, generation 7         the assignment {0}
    Heartbeat, generation 7         REBALANCE_IN_PROGRESS: the member must confirm that it has given up partition 1
    JoinGroup, owns {0}             generation 8
    SyncGroup, generation 8         the assignment {0}

If a function of this module raises KafkaError, the function has not changed the group.

HMB differs from Kafka in one case: a member leaves, and all remaining members use the classic protocol. HMB asks the
remaining members to join again, so that they receive the partitions of the member that has left. Kafka 4.3 does not ask
them, so these partitions have no owner until the next JoinGroup request.

Source: Kafka's `GroupMetadataManager` (`classicGroupJoinToConsumerGroup` and the functions with similar names).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from hmb.coordinator.classic.members import Call, MemberIdentity, protocols_of
from hmb.coordinator.classic.older_clients import check_protocol, requests_member_id
from hmb.coordinator.classic.rebalance import JOIN_AGAIN
from hmb.coordinator.cluster_topics import ClusterTopics, MayDescribe
from hmb.coordinator.consumer.classic_metadata import ClassicMetadata
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.consumer.state import ConsumerState
from hmb.coordinator.consumer.states import MemberState
from hmb.coordinator.group import unloaded
from hmb.coordinator.migration.partitions import encode_assignment, ids_of
from hmb.coordinator.modern.group import LEAVES
from hmb.protocol.consumer_protocol import CONSUMER, ConsumerProtocolSubscription
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.uuids import encode_uuid


def join(
    group: ConsumerGroup,
    call: Call,
    request: JoinGroupRequest,
    topics: ClusterTopics,
    now: int,
    may_describe: MayDescribe,
) -> None:
    """Handle JoinGroup: add the member, or let it take one step towards its target assignment. Raises KafkaError."""
    _check_loaded(group)
    member_id = request.member_id or encode_uuid(uuid4())
    if member_id not in group.state.members:
        group.state.check_not_full(group.kind, group.settings.max_size)
    _check_protocols(group.state, request)
    if not request.member_id and request.group_instance_id is None and requests_member_id(call):
        response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        group.responses.append((call, response))
        return
    classic, subscription = _decoded(request)
    before = _before(group.state, request, member_id)
    replaces = group.state.members.get(group.state.instances.get(request.group_instance_id or "", ""))
    owned = ids_of(subscription.owned_partitions, topics)
    member = group.step(before, _updated(before, call, request, classic, subscription), owned, now, may_describe)
    group.state.finish()
    group.deadlines.start_session(member_id, request.session_timeout_ms, now)
    group.deadlines.joined(member_id, now + request.rebalance_timeout_ms)
    if replaces is not None and replaces.classic is None:
        group.try_downgrade((), now)
    response = JoinGroupResponse(
        member_id=member_id, generation_id=member.epoch, protocol_type=CONSUMER, protocol_name=classic.protocol
    )
    group.responses.append((call, response))


def sync(group: ConsumerGroup, call: Call, request: SyncGroupRequest, topics: ClusterTopics, now: int) -> None:
    """Handle SyncGroup: queue a response with the current assignment of the member. Raises KafkaError."""
    member, classic = _known(group, request.member_id, request.group_instance_id)
    member.check_generation(request.generation_id)
    check_protocol(request, CONSUMER, classic.protocol)
    if group.state.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        raise _must_join(group, member, now)
    group.deadlines.end_sync(member.member_id)
    group.deadlines.start_session(member.member_id, classic.session_timeout, now)
    _, version = classic.subscription()
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(member.assigned, version, topics),
    )
    group.responses.append((call, response))


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, now: int) -> None:
    """Handle Heartbeat: extend the session of the member.

    Raises REBALANCE_IN_PROGRESS if the member must join again. Raises another error if the group does not know the
    member or its generation.
    """
    member, classic = _known(group, request.member_id, request.group_instance_id)
    member.check_generation(request.generation_id)
    group.deadlines.start_session(member.member_id, classic.session_timeout, now)
    is_due = group.is_assignment_due and _are_all_classic(group)
    has_new_target = is_due or member.epoch < group.state.assignment_epoch
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            must_join = True
        case MemberState.UNRELEASED_PARTITIONS:
            must_join = has_new_target or not group.state.waits(member)
        case MemberState.STABLE:
            must_join = has_new_target
    if must_join:
        raise _must_join(group, member, now)


def _are_all_classic(group: ConsumerGroup) -> bool:
    """Return whether all members use the classic protocol.

    Such a group usually becomes a classic group. It stays a KIP-848 group if the broker cannot downgrade it, for
    example because the migration policy forbids this.
    """
    return all(member.classic is not None for member in group.state.members.values())


def leave(group: ConsumerGroup, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
    """Handle LeaveGroup: remove members. Return one error code for each entry of `leaving`.

    For a removed member, the code is `ErrorCode.NONE`. Raises COORDINATOR_NOT_AVAILABLE if the group was deleted or the
    broker stops.
    """
    _check_loaded(group)
    outcomes, gone = [], []
    for identity in leaving:
        try:
            gone.append(_leaving(group, identity).member_id)
            outcomes.append(ErrorCode.NONE)
        except KafkaError as error:
            outcomes.append(error.code)
    if gone:
        group.remove(list(dict.fromkeys(gone)), LEAVES, now)
        group.state.finish()
    return outcomes


# -- the member of a request


def _check_loaded(group: ConsumerGroup) -> None:
    if group.is_unloaded:
        raise unloaded(group.group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _known(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[ConsumerMember, ClassicMetadata]:
    """Return the member that a request names, and the metadata of this member for the classic protocol.

    Raises one of these errors:

    - UNKNOWN_MEMBER_ID: the group has no such member, or the member uses the KIP-848 protocol.
    - FENCED_INSTANCE_ID: the instance id in the request belongs to a member with another member id.
    - COORDINATOR_NOT_AVAILABLE: the group was deleted, or the broker stops.
    """
    _check_loaded(group)
    member = _named(group.state, member_id, instance_id)
    if member.classic is None:
        why = f"Member {member.member_id} does not use the classic protocol."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)
    return member, member.classic


def _named(state: ConsumerState, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return state.known(member_id)
    known_id = state.instances.get(instance_id)
    if known_id is None:
        why = f"Member with instance id {instance_id} is not a member of group {state.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)
    if known_id != member_id:
        why = f"Static member {member_id} with instance id {instance_id} was fenced by member {known_id}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, why)
    return state.members[known_id]


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """Return the member that an entry of a LeaveGroup request names.

    An entry contains a member id, a group instance id, or both. If the entry contains only an instance id, the
    function returns the static member with this instance id.
    """
    instance_id, member_id = identity.group_instance_id, identity.member_id
    if instance_id is not None and not member_id:
        member_id = group.state.instances.get(instance_id, "")
    return _named(group.state, member_id, instance_id)


# -- JoinGroup


def _before(state: ConsumerState, request: JoinGroupRequest, member_id: str) -> ConsumerMember:
    """Return the member as it was before this request, or a new member if the client is not a member yet.

    If a static member restarts, its request contains an instance id but no member id. The function then returns
    a copy of the old member with the id `member_id`, the epoch 0 and the same partitions.

    If a request contains an instance id and a member id, both must belong to the same member. The function
    raises UNKNOWN_MEMBER_ID if no member has the instance id, and FENCED_INSTANCE_ID if the member with this
    instance id has another member id.
    """
    instance_id = request.group_instance_id
    if instance_id is None:
        return state.members.get(member_id) or ConsumerMember(member_id)
    if request.member_id:
        return _named(state, member_id, instance_id)
    if (old_id := state.instances.get(instance_id)) is None:
        return ConsumerMember(member_id)
    return replace(state.members[old_id], member_id=member_id, epoch=0, previous_epoch=0)


def _updated(
    before: ConsumerMember,
    call: Call,
    request: JoinGroupRequest,
    classic: ClassicMetadata,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    return replace(
        before,
        instance_id=request.group_instance_id if before.instance_id is None else before.instance_id,
        rack_id=before.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout=request.rebalance_timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",  # In the classic protocol, the client sends topic names, not a regular expression.
        classic=classic,
    )


def _decoded(request: JoinGroupRequest) -> tuple[ClassicMetadata, ConsumerProtocolSubscription]:
    """Return the protocols and the subscription of a JoinGroup request.

    As in Kafka, raises UNKNOWN_SERVER_ERROR if the subscription is malformed.
    """
    classic = ClassicMetadata(request.session_timeout_ms, protocols_of(request))
    try:
        return classic, classic.subscription()[0]
    except ProtocolError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the subscription is malformed: {error}") from error


def _check_protocols(state: ConsumerState, request: JoinGroupRequest) -> None:
    """Raise INCONSISTENT_GROUP_PROTOCOL if the protocols in the request do not fit the group.

    The protocol type of the request must be "consumer". The request must also list an assignor that all classic
    members of the group support, for example "range". Members with the KIP-848 protocol do not list assignors, so
    the function ignores these members.
    """
    shared = {protocol.name for protocol in request.protocols}
    for member in state.members.values():
        if member.classic is not None:
            shared &= member.classic.protocol_names
    if request.protocol_type != CONSUMER or not shared:
        why = f"Member {request.member_id}'s protocols are not supported."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)


def _must_join(group: ConsumerGroup, member: ConsumerMember, now: int) -> KafkaError:
    """Return the error that asks a member to join again, and start the deadline for its JoinGroup request."""
    group.deadlines.start_join(member.member_id, now + member.rebalance_timeout)
    return KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, JOIN_AGAIN)
