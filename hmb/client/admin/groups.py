"""Groups: which there are, who is in them and what each member has; to send members away, to delete groups.

Every broker knows the groups that it coordinates, so a list is put together from all of them, and a group is described
by its coordinator.  Kafka has several types of groups.  In a *classic* one the members share out the partitions among
themselves, and the coordinator passes on bytes that it does not read: what a member has is decoded here, where the
group is one of consumers.  In a *consumer* group (KIP-848) the coordinator does it, and tells what each member has and
what it is to have.  Share and streams groups are listed, but not described.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple

from hmb.client.admin.base import AdminBase, T
from hmb.client.admin.group_offsets import check_group
from hmb.client.arguments import list_of_names
from hmb.client.connection import Connection
from hmb.client.errors import answered_error
from hmb.client.metadata import Node
from hmb.protocol.consumer_protocol import CONSUMER, ConsumerProtocolAssignment
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from hmb.protocol.topics import TopicPartition

ClassicGroup = DescribeGroupsResponse.DescribedGroup
ConsumerGroup = ConsumerGroupDescribeResponse.DescribedGroup
CLASSIC = "classic"
FIRST_VERSION_OF_STATES = ListGroupsRequest.first_version("states_filter")
FIRST_VERSION_OF_TYPES = ListGroupsRequest.first_version("types_filter")
FIRST_VERSION_OF_SEVERAL_MEMBERS = LeaveGroupRequest.first_version("members")


class GroupListing(NamedTuple):
    """A group; before Kafka 2.6 brokers do not tell the state, before 3.8 not the type ("")."""

    group_id: str
    protocol_type: str  # "consumer" of consumers; "connect", or "" if the group has no members and never had a type
    state: str
    type: str


class MemberDescription(NamedTuple):
    """A member: `assignment` is what it has, `target` what it is to have (the same in a classic group)."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    member_epoch: int  # -1 in a classic group


class GroupDescription(NamedTuple):
    """A group; `assignor` is the protocol that a classic group agreed on."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    group_epoch: int  # -1 in a classic group

    @property
    def is_active(self) -> bool:
        """Whether it has members, who would not hear of an offset that another sets."""
        return self.state not in ("Empty", "Dead")


class GroupsAdmin(AdminBase):
    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupListing]:
        """All groups, or those in these states and of these types (in any spelling of capitals).  Needs Kafka 0.9."""
        states = list_of_names("states", states, '["Stable"]')
        types = list_of_names("types", types, '["classic"]')
        listed: set[GroupListing] = set()
        for node in self._nodes():
            listed.update(self._retrying(partial(self._listed, self._connection(node))))
        return sorted(
            group for group in listed if _is_one_of(group.state, states) and _is_one_of(group.type or CLASSIC, types)
        )

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        """These groups with their members; GROUP_ID_NOT_FOUND for those that there are not.  Needs Kafka 0.9."""
        return {group: self._or_error(partial(self._group, group)) for group in list_of_names("groups", group_ids)}

    def delete_groups(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete groups and what they have committed, None for each that is gone; NON_EMPTY_GROUP if it has members.

        Needs Kafka 1.1.
        """

        def delete(group: str) -> None:
            def ask(connection: Connection) -> None:
                response: DeleteGroupsResponse = connection.send(DeleteGroupsRequest(groups_names=[group]))
                (result,) = response.results
                check_group(group, result.error_code)

            self._at_coordinator(group, ask)

        return {group: self._or_error(partial(delete, group)) for group in list_of_names("groups", group_ids)}

    def remove_members(
        self, group: str, *, member_ids: Iterable[str] = (), group_instance_ids: Iterable[str] = ()
    ) -> dict[str, KafkaError | None]:
        """Send members away, by their member ids or group instance ids; None for each that is out.

        A member that still runs will join again.  A static member that does not is gone for good.  Needs Kafka 0.9,
        for group instance ids 2.4.
        """
        identity = LeaveGroupRequest.MemberIdentity
        members = [identity(member_id=it, group_instance_id=None) for it in list_of_names("member ids", member_ids)]
        static = list_of_names("group instance ids", group_instance_ids)
        members += [identity(member_id="", group_instance_id=it) for it in static]
        return self._at_coordinator(group, lambda connection: _leave(connection, group, members))

    @staticmethod
    def _or_error(ask: Callable[[], T]) -> T | KafkaError:
        try:
            return ask()
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                raise  # that holds for all of them
            return error

    def _listed(self, connection: Connection) -> list[GroupListing]:
        response: ListGroupsResponse = connection.send(ListGroupsRequest())
        if response.error_code:
            raise answered_error(f"groups of {connection.address}", response.error_code)
        return [GroupListing(it.group_id, it.protocol_type, it.group_state, it.group_type) for it in response.groups]

    def _group(self, group: str) -> GroupDescription:
        def ask(connection: Connection) -> GroupDescription:
            if connection.knows(ConsumerGroupDescribeRequest):
                try:
                    return _describe_consumer_group(connection, group)
                except KafkaError as error:
                    if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                        raise  # else it may be a classic one
            return _describe_classic_group(connection, group)

        try:
            return self._at_coordinator(group, ask)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                self._refuse_other_types(group)
            raise

    def _refuse_other_types(self, group: str) -> None:
        """Say why a group that is listed is not found."""
        for listed in self.list_groups():
            if listed.group_id == group and listed.type.lower() not in (CLASSIC, CONSUMER):
                what = f"group {group!r} is a {listed.type.lower()} group, which this client only lists"
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, what)


def _is_one_of(text: str, wanted: Collection[str]) -> bool:
    return not wanted or text.lower() in {each.lower() for each in wanted}


def _describe_consumer_group(connection: Connection, group: str) -> GroupDescription:
    response: ConsumerGroupDescribeResponse = connection.send(ConsumerGroupDescribeRequest(group_ids=[group]))
    (found,) = response.groups
    check_group(group, found.error_code, found.error_message)
    members = [
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _partitions(member.assignment),
            _partitions(member.target_assignment),
            member.member_epoch,
        )
        for member in found.members
    ]
    node = Node(connection.host, connection.port)
    return GroupDescription(
        group, CONSUMER, found.group_state, CONSUMER, found.assignor_name, node, tuple(members), found.group_epoch
    )


def _describe_classic_group(connection: Connection, group: str) -> GroupDescription:
    response: DescribeGroupsResponse = connection.send(DescribeGroupsRequest(groups=[group]))
    (found,) = response.groups
    check_group(group, found.error_code, found.error_message)
    if found.group_state == "Dead":  # how brokers before 4.0 say that it does not exist
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
        group, CLASSIC, found.group_state, found.protocol_type, found.protocol_data, node, tuple(members), -1
    )


def _partitions(assignment: ConsumerGroup.Member.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(it.topic_name, number) for it in assignment.topic_partitions for number in it.partitions)
    )


def _decoded(assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a classic assignment; none while the group shares them out, or if they cannot be read."""
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
    if version >= FIRST_VERSION_OF_SEVERAL_MEMBERS:
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
    return answered_error(f"group {group!r}", number) if number else None
