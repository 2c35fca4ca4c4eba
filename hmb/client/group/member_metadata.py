"""What members of a classic group tell each other, as bytes and as what the assignors work with.

A member joins with one subscription for each assignor it knows. They differ in what they say of the partitions that
the member had until now: cooperative ones name what it still owns, the sticky one has it in its user data, for an eager
member has given up everything by then. Both say in which generation it was given that, since a member that missed a
rebalance believes to own what others have.

Clients wrote these bytes differently over the years: librdkafka's cooperative members tell their generation in the
sticky assignor's user data, Java's in an int32. So the reading side tries what it can, and takes a member whose user
data it cannot read for one that had nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from hmb.client.group.assignors import ASSIGNORS, MemberToAssign
from hmb.client.group.member import Owned
from hmb.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    CooperativeUserData,
    StickyUserData,
)
from hmb.protocol.errors import ProtocolError
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.topics import TopicPartition

SUBSCRIPTION_VERSION = ConsumerProtocolSubscription.versions[-1]
ASSIGNMENT_VERSION = ConsumerProtocolAssignment.versions[-1]

JoinProtocol = JoinGroupRequest.JoinGroupRequestProtocol
JoinedMember = JoinGroupResponse.JoinGroupResponseMember
T = TypeVar("T")


class HasPartitions(Protocol):
    """A topic of any of these messages."""

    topic: str
    partitions: list[int]


def subscriptions(
    assignors: Sequence[str], topics: Iterable[str], owned: Owned, before: Owned, generation: int
) -> list[JoinProtocol]:
    """One an assignor: `owned` is what the member owns still, `before` what it was given in `generation`."""
    return [
        JoinProtocol(
            name=name,
            metadata=ConsumerProtocolSubscription(
                topics=sorted(topics),
                user_data=_user_data(name, before, generation),
                owned_partitions=_by_topic(ConsumerProtocolSubscription.TopicPartition, owned),
                generation_id=generation,
            ).versioned(SUBSCRIPTION_VERSION),
        )
        for name in assignors
    ]


def _user_data(assignor: str, before: Owned, generation: int) -> bytes | None:
    if assignor == "sticky" and before:
        topics = _by_topic(StickyUserData.TopicPartition, before)
        return StickyUserData(previous_assignment=topics, generation=generation).encode(1)
    if assignor == "cooperative-sticky" and generation >= 0:
        return CooperativeUserData(generation=generation).encode(0)
    return None


def member_to_assign(assignor: str, member: JoinedMember) -> MemberToAssign:
    """What a member told with its JoinGroup, as the assignor wants it. Raises ProtocolError."""
    said, version = ConsumerProtocolSubscription.parse(member.metadata)
    owned, generation = _partitions(said.owned_partitions), said.generation_id if version >= 2 else -1
    before = _read_user_data(said.user_data or b"")
    if assignor == "sticky":
        owned, generation = _partitions(before.previous_assignment), before.generation
    elif generation < 0:
        generation = before.generation
    return MemberToAssign(member.member_id, frozenset(said.topics), member.group_instance_id, owned, generation)


def _read_user_data(data: bytes | memoryview) -> StickyUserData:
    for version in reversed(StickyUserData.versions):
        with suppress(ProtocolError):
            return StickyUserData.decode(data, version)
    with suppress(ProtocolError):
        return StickyUserData(generation=CooperativeUserData.decode(data, 0).generation)
    return StickyUserData()


def assign(assignor: str, members: Sequence[JoinedMember], counts: Mapping[str, int]) -> dict[str, bytes]:
    """The leader's work: everybody's assignment, by member id. Raises ProtocolError for what is no subscription."""
    assignment = ASSIGNORS[assignor].assign([member_to_assign(assignor, member) for member in members], counts)
    return {
        member_id: ConsumerProtocolAssignment(
            assigned_partitions=_by_topic(ConsumerProtocolAssignment.TopicPartition, owned)
        ).versioned(ASSIGNMENT_VERSION)
        for member_id, owned in assignment.items()
    }


def wanted_topics(members: Iterable[JoinedMember]) -> frozenset[str]:
    """All topics that some member reads. Raises ProtocolError."""
    return frozenset().union(*(ConsumerProtocolSubscription.parse(member.metadata)[0].topics for member in members))


def parse_assignment(data: bytes | memoryview) -> Owned:
    """Raises ProtocolError. No bytes at all are an assignment of nothing: what a leader gives that knows no better."""
    if not data:
        return frozenset()
    return _partitions(ConsumerProtocolAssignment.parse(data)[0].assigned_partitions)


def _by_topic(make: Callable[..., T], partitions: Iterable[TopicPartition]) -> list[T]:
    topics: dict[str, list[int]] = {}
    for name, number in sorted(partitions):
        topics.setdefault(name, []).append(number)
    return [make(topic=name, partitions=numbers) for name, numbers in topics.items()]


def _partitions(topics: Iterable[HasPartitions]) -> Owned:
    return frozenset(TopicPartition(each.topic, number) for each in topics for number in each.partitions)
