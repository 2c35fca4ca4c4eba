"""Contains the methods of `Admin` that list, describe and delete groups, and remove members.

A broker lists only the groups that it coordinates, so the admin asks every broker for its groups. To describe one
group, the admin asks only the coordinator of this group. Kafka has four types of groups:
- In a *classic* group, one of the members assigns the partitions. The coordinator does not decode the assignments, and
  returns them as bytes. This module decodes them if the members are consumers.
- In a *consumer* group (KIP-848), the coordinator assigns the partitions. It returns the current assignment and the
  target assignment of each member.
- In a *share* group (KIP-932), the coordinator assigns the partitions, and several members can read the same
  partition.
- In a *streams* group (KIP-1071), the coordinator assigns the tasks of a Kafka Streams application. For each member,
  this module returns the partitions that the member's active tasks read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple

from hmb.client.admin.brokers import Brokers, T
from hmb.client.admin.group_offsets import check_group
from hmb.client.arguments import list_of_names
from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.metadata import Node
from hmb.protocol.consumer_protocol import CONSUMER, ConsumerProtocolAssignment
from hmb.protocol.enums import GroupState, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from hmb.protocol.messages.leave_group import FIRST_VERSION_OF_MEMBERS, LeaveGroupRequest, LeaveGroupResponse
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from hmb.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from hmb.protocol.messages.streams_group_heartbeat import TaskIds
from hmb.protocol.topics import TopicPartition

ClassicGroup = DescribeGroupsResponse.DescribedGroup
ConsumerGroup = ConsumerGroupDescribeResponse.DescribedGroup
ShareGroup = ShareGroupDescribeResponse.DescribedGroup
StreamsGroup = StreamsGroupDescribeResponse.DescribedGroup
DESCRIBED = tuple(GroupType)  # the types of groups that this client describes
FIRST_VERSION_OF_STATES = ListGroupsRequest.first_version("states_filter")
FIRST_LIST_GROUPS_VERSION_OF_TYPES = ListGroupsRequest.first_version("types_filter")


class GroupListing(NamedTuple):
    """One group in the list of all groups.

    - `protocol_type` is "consumer" if the members are consumers. It is "" if the group has never had members.
    - `state` is "" if the broker is older than Kafka 2.6.
    - `type` is "" if the broker is older than Kafka 3.8.
    """

    group_id: str
    protocol_type: str
    state: str
    type: str


class MemberDescription(NamedTuple):
    """A member of a group.

    - `assignment` contains the partitions that the member owns now.
    - `target` contains the partitions that the member will own when the current rebalance has ended. In a classic
      group or a share group, `target` is always equal to `assignment`.
    - `member_epoch` is -1 in a classic group.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    member_epoch: int


class GroupDescription(NamedTuple):
    """A group and its members. `group_epoch` is -1 for a classic group."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    group_epoch: int

    @property
    def is_active(self) -> bool:
        """True if the group has members. An admin cannot change the committed offsets of a group with members."""
        return self.state not in (GroupState.EMPTY, GroupState.DEAD)


def list_groups(brokers: Brokers, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupListing]:
    """Return all groups, or only the groups with these states and types.

    In `states` and `types`, the method ignores the case of letters: "stable" also finds "Stable". Needs Kafka 0.9.
    """
    states = list_of_names("states", states, '["Stable"]')
    types = list_of_names("types", types, '["classic"]')
    listed: set[GroupListing] = set()
    for node in brokers.nodes():
        listed.update(brokers.retrying(partial(_listed, brokers.connection(node))))
    return sorted(
        group
        for group in listed
        if _is_one_of(group.state, states) and _is_one_of(group.type or GroupType.CLASSIC, types)
    )


def describe_groups(brokers: Brokers, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
    """Return the state and the members of each group. Needs Kafka 0.9.

    If a group does not exist, its error is GROUP_ID_NOT_FOUND.
    """
    return {group: _or_error(partial(_group, brokers, group)) for group in list_of_names("groups", group_ids)}


def delete_groups(brokers: Brokers, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
    """Delete groups and their committed offsets. The result contains None for each deleted group.

    If a group has members, it is not deleted, and its error is NON_EMPTY_GROUP. Needs Kafka 1.1.
    """

    def delete(group: str) -> None:
        def ask(connection: Connection) -> None:
            response: DeleteGroupsResponse = connection.send(DeleteGroupsRequest(groups_names=[group]))
            (result,) = response.results
            check_group(group, result.error_code)

        brokers.at_coordinator(group, ask)

    return {group: _or_error(partial(delete, group)) for group in list_of_names("groups", group_ids)}


def remove_members(
    brokers: Brokers, group: str, *, member_ids: Iterable[str] = (), group_instance_ids: Iterable[str] = ()
) -> dict[str, KafkaError | None]:
    """Remove members from a group, by member id or by group instance id.

    The result contains None for each removed member, and a KafkaError for each other member. If a removed consumer
    is still running, it joins the group again. Needs Kafka 0.9, and Kafka 2.4 for group instance ids.
    """
    identity = LeaveGroupRequest.MemberIdentity
    members = [identity(member_id=it, group_instance_id=None) for it in list_of_names("member ids", member_ids)]
    static = list_of_names("group instance ids", group_instance_ids)
    members += [identity(member_id="", group_instance_id=it) for it in static]
    return brokers.at_coordinator(group, lambda connection: _leave(connection, group, members))


def _or_error(ask: Callable[[], T]) -> T | KafkaError:
    try:
        return ask()
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise  # The broker is too old for this request, so no group can have a result.
        return error


def _listed(connection: Connection) -> list[GroupListing]:
    response: ListGroupsResponse = connection.send(ListGroupsRequest())
    if response.error_code:
        raise response_error(f"groups of {connection.address}", response.error_code)
    return [GroupListing(it.group_id, it.protocol_type, it.group_state, it.group_type) for it in response.groups]


def _group(brokers: Brokers, group: str) -> GroupDescription:
    def ask(connection: Connection) -> GroupDescription:
        for request, describe in (
            (ConsumerGroupDescribeRequest, _describe_consumer_group),
            (ShareGroupDescribeRequest, _describe_share_group),
            (StreamsGroupDescribeRequest, partial(_describe_streams_group, brokers)),
        ):
            if connection.supports(request):
                try:
                    return describe(connection, group)
                except KafkaError as error:
                    if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                        raise  # After GROUP_ID_NOT_FOUND, the loop tries the next type: the group may be of this type.
        return _describe_classic_group(connection, group)

    try:
        return brokers.at_coordinator(group, ask)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            _refuse_other_types(brokers, group)
        raise


def _refuse_other_types(brokers: Brokers, group: str) -> None:
    """Raise KafkaError if `group` has a type that this client cannot describe. The error names the type."""
    for listed in list_groups(brokers):
        if listed.group_id == group and listed.type.lower() not in DESCRIBED:
            what = f"group {group!r} is a {listed.type.lower()} group, which this client only lists"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, what)


def _is_one_of(text: str, wanted: Collection[str]) -> bool:
    return not wanted or text.lower() in {each.lower() for each in wanted}


def _describe_consumer_group(connection: Connection, group: str) -> GroupDescription:
    response: ConsumerGroupDescribeResponse = connection.send(ConsumerGroupDescribeRequest(group_ids=[group]))
    (found,) = response.groups
    check_group(group, found.error_code, found.error_message)
    members = [_member(it, _partitions(it.assignment), _partitions(it.target_assignment)) for it in found.members]
    node = Node(connection.host, connection.port)
    kind, state = GroupType.CONSUMER, found.group_state
    return GroupDescription(
        group, kind, state, CONSUMER, found.assignor_name, node, tuple(members), found.group_epoch
    )


def _describe_share_group(connection: Connection, group: str) -> GroupDescription:
    response: ShareGroupDescribeResponse = connection.send(ShareGroupDescribeRequest(group_ids=[group]))
    (found,) = response.groups
    check_group(group, found.error_code, found.error_message)
    members = []
    for member in found.members:
        assigned = _partitions(member.assignment)
        members.append(
            MemberDescription(
                member.member_id, None, member.client_id, member.client_host, assigned, assigned, member.member_epoch
            )
        )
    node = Node(connection.host, connection.port)
    kind, state = GroupType.SHARE, found.group_state
    return GroupDescription(group, kind, state, kind, found.assignor_name, node, tuple(members), found.group_epoch)


def _describe_streams_group(brokers: Brokers, connection: Connection, group: str) -> GroupDescription:
    response: StreamsGroupDescribeResponse = connection.send(StreamsGroupDescribeRequest(group_ids=[group]))
    (found,) = response.groups
    check_group(group, found.error_code, found.error_message)
    sources = _sources(found)
    described = brokers.cluster.metadata({name for names in sources.values() for name in names}).topics
    counts = {topic.name: len(topic.partitions) for topic in described}

    def read(tasks: Iterable[TaskIds]) -> tuple[TopicPartition, ...]:
        each = ((name, number) for it in tasks for name in sources[it.subtopology_id] for number in it.partitions)
        return tuple(sorted(TopicPartition(name, number) for name, number in each if number < counts.get(name, 0)))

    members = [
        _member(it, read(it.assignment.active_tasks), read(it.target_assignment.active_tasks)) for it in found.members
    ]
    node = Node(connection.host, connection.port)
    kind, state = GroupType.STREAMS, found.group_state
    return GroupDescription(group, kind, state, kind, "", node, tuple(members), found.group_epoch)


def _sources(group: StreamsGroup) -> dict[str, list[str]]:
    """Return the names of the topics that each subtopology of a streams group reads."""
    subtopologies = (group.topology.subtopologies if group.topology else None) or []
    return {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }


def _describe_classic_group(connection: Connection, group: str) -> GroupDescription:
    response: DescribeGroupsResponse = connection.send(DescribeGroupsRequest(groups=[group]))
    (found,) = response.groups
    check_group(group, found.error_code, found.error_message)
    if found.group_state == GroupState.DEAD:  # Before Kafka 4.0, brokers return this state for an unknown group.
        check_group(group, ErrorCode.GROUP_ID_NOT_FOUND)
    members = []
    for member in found.members:
        assigned = _decoded(member.member_assignment) if found.protocol_type == CONSUMER else ()
        members.append(
            MemberDescription(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                assigned,
                assigned,
                -1,
            )
        )
    node = Node(connection.host, connection.port)
    return GroupDescription(
        group, GroupType.CLASSIC, found.group_state, found.protocol_type, found.protocol_data, node, tuple(members), -1
    )


def _member(
    member: ConsumerGroup.Member | StreamsGroup.Member,
    assigned: tuple[TopicPartition, ...],
    target: tuple[TopicPartition, ...],
) -> MemberDescription:
    identity = member.member_id, member.instance_id, member.client_id, member.client_host
    return MemberDescription(*identity, assigned, target, member.member_epoch)


def _partitions(
    assignment: ConsumerGroup.Member.Assignment | ShareGroup.Member.Assignment,
) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(it.topic_name, number) for it in assignment.topic_partitions for number in it.partitions)
    )


def _decoded(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions in the assignment of a member of a classic group.

    Return no partitions if the bytes cannot be decoded. During a rebalance, `assignment` contains no bytes, so the
    result also contains no partitions.
    """
    try:
        decoded, _ = ConsumerProtocolAssignment.parse(assignment)
    except ProtocolError:
        return ()
    return tuple(
        sorted(TopicPartition(it.topic, number) for it in decoded.assigned_partitions for number in it.partitions)
    )


def _leave(
    connection: Connection, group: str, members: list[LeaveGroupRequest.MemberIdentity]
) -> dict[str, KafkaError | None]:
    version = connection.version_of(LeaveGroupRequest)
    left: dict[str, KafkaError | None] = {}
    if version >= FIRST_VERSION_OF_MEMBERS:
        for member in members:
            member.reason = "removed by an administrator"
        response: LeaveGroupResponse = connection.send(LeaveGroupRequest(group_id=group, members=members), version)
        check_group(group, response.error_code)
        for answer in response.members:
            left[answer.group_instance_id or answer.member_id] = _error_of(group, answer.error_code)
        return left
    for member in members:
        if member.group_instance_id is not None:
            what = f"{connection.address} is older than Kafka 2.4 and has no group instance ids"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what)
        response = connection.send(LeaveGroupRequest(group_id=group, member_id=member.member_id), version)
        left[member.member_id] = _error_of(group, response.error_code)
    return left


def _error_of(group: str, number: int) -> KafkaError | None:
    return response_error(f"group {group!r}", number) if number else None
