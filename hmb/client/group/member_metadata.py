"""Encodes and decodes what the members of a classic group send to each other: subscriptions and assignments.

The coordinator does not decode subscriptions and assignments. In JoinGroup, a member sends one subscription for each of
its assignors. The leader receives the subscriptions of all members. In SyncGroup, the leader sends the assignments of
all members, and each member receives its own assignment.

A subscription also contains the partitions that the member owned before the rebalance, and the generation in which the
member received them. If two members list the same partition, the member with the older generation has missed a
rebalance. The leader then ignores the claim of this member.

A cooperative member keeps its partitions during a rebalance, and lists them in the field `owned_partitions`. An eager
member gives up all its partitions before it joins, so its list is empty. With the sticky assignor, an eager member
lists its previous partitions in the field `user_data`. The leader can then assign the same partitions to it again.

Clients encode `user_data` in different formats. With the cooperative-sticky assignor, Java clients write only the
generation, as an int32. librdkafka writes the format of the sticky assignor, which also contains partitions. The leader
does not know which client has sent the data, so it tries each known format. If no format fits, the leader assumes that
`user_data` contains no partitions.

Source: KIP-54, KIP-429, KIP-792.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from hmb.client.group.assignors import ASSIGNORS, SubscribedMember
from hmb.client.group.member import Owned
from hmb.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    CooperativeUserData,
    StickyUserData,
)
from hmb.protocol.enums import NO_GENERATION
from hmb.protocol.errors import ProtocolError
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.topics import TopicPartition

SUBSCRIPTION_VERSION = ConsumerProtocolSubscription.versions[-1]
ASSIGNMENT_VERSION = ConsumerProtocolAssignment.versions[-1]
FIRST_VERSION_OF_GENERATIONS = ConsumerProtocolSubscription.first_version("generation_id")

JoinProtocol = JoinGroupRequest.JoinGroupRequestProtocol
JoinedMember = JoinGroupResponse.JoinGroupResponseMember
T = TypeVar("T")


class HasPartitions(Protocol):
    """A struct in a message that contains the name of a topic and a list of partition numbers."""

    topic: str
    partitions: list[int]


def subscriptions(
    assignors: Sequence[str], topics: Iterable[str], owned: Owned, previous: Owned, generation: int
) -> list[JoinProtocol]:
    """Encode one subscription for each assignor.

    In the generation with the number `generation`, the member received the partitions in `previous`. The member now
    owns the partitions in `owned`. An eager member gives up all partitions before it joins, so its `owned` is empty.
    """
    return [
        JoinProtocol(
            name=name,
            metadata=ConsumerProtocolSubscription(
                topics=sorted(topics),
                user_data=_user_data(name, previous, generation),
                owned_partitions=_by_topic(ConsumerProtocolSubscription.TopicPartition, owned),
                generation_id=generation,
            ).versioned(SUBSCRIPTION_VERSION),
        )
        for name in assignors
    ]


def _user_data(assignor: str, previous: Owned, generation: int) -> bytes | None:
    if assignor == "sticky" and previous:
        topics = _by_topic(StickyUserData.TopicPartition, previous)
        return StickyUserData(previous_assignment=topics, generation=generation).encode(1)
    if assignor == "cooperative-sticky" and generation >= 0:
        return CooperativeUserData(generation=generation).encode(0)
    return None


def subscribed_member(assignor: str, member: JoinedMember) -> SubscribedMember:
    """Decode a member's subscription. Raises ProtocolError if the bytes are not a subscription.

    If `assignor` is "sticky", the field `user_data` contains the member's partitions and generation.
    """
    sent, version = ConsumerProtocolSubscription.parse(member.metadata)
    owned = _partitions(sent.owned_partitions)
    generation = sent.generation_id if version >= FIRST_VERSION_OF_GENERATIONS else NO_GENERATION
    user_data = _parse_user_data(sent.user_data or b"")
    if assignor == "sticky":
        owned, generation = _partitions(user_data.previous_assignment), user_data.generation
    elif generation < 0:
        generation = user_data.generation
    return SubscribedMember(member.member_id, frozenset(sent.topics), member.group_instance_id, owned, generation)


def _parse_user_data(data: bytes | memoryview) -> StickyUserData:
    """Decode the field `user_data` of a subscription, in the format of any known client.

    If no known format fits, return user data without partitions.
    """
    for version in reversed(StickyUserData.versions):
        with suppress(ProtocolError):
            return StickyUserData.decode(data, version)
    with suppress(ProtocolError):
        return StickyUserData(generation=CooperativeUserData.decode(data, 0).generation)
    return StickyUserData()


def assign(assignor: str, members: Sequence[JoinedMember], counts: Mapping[str, int]) -> dict[str, bytes]:
    """Call the assignor. Return the encoded assignment of each member, by member id.

    Raises ProtocolError if the subscription of a member cannot be decoded.
    """
    assignment = ASSIGNORS[assignor].assign([subscribed_member(assignor, member) for member in members], counts)
    return {
        member_id: ConsumerProtocolAssignment(
            assigned_partitions=_by_topic(ConsumerProtocolAssignment.TopicPartition, owned)
        ).versioned(ASSIGNMENT_VERSION)
        for member_id, owned in assignment.items()
    }


def subscribed_topics(members: Iterable[JoinedMember]) -> frozenset[str]:
    """Return all topics that at least one member reads.

    Raises ProtocolError if the subscription of a member cannot be decoded.
    """
    return frozenset().union(*(ConsumerProtocolSubscription.parse(member.metadata)[0].topics for member in members))


def parse_assignment(data: bytes | memoryview) -> Owned:
    """Decode an assignment, and return its partitions. Raises ProtocolError if the bytes are malformed.

    If the bytes are empty, the assignment is also empty. Some leaders send no bytes to a member without partitions.
    """
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
