"""The bytes that the members of a classic group exchange: subscriptions and assignments.

The coordinator does not read these bytes. A member sends one subscription for each of its assignors in JoinGroup, and
the leader receives the subscriptions of all members. The leader sends the assignments in SyncGroup.

A subscription also contains the partitions that the member had until now. A cooperative member lists the partitions
that it still owns. An eager member has given up everything by then, so the sticky assignor stores its earlier
partitions in the field `user_data`. Both add the generation in which the member received these partitions. The leader
needs the generation, because a member that missed a rebalance may list partitions that belong to other members by now.

Clients encode subscriptions in different formats. Cooperative members of librdkafka write their generation as the
sticky assignor does. Members in Java write it as an int32. The leader therefore tries each known format of the user
data. If none fits, the leader treats the member as one that had no partitions.

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
    """A topic with partition numbers, in any of the messages of this module."""

    topic: str
    partitions: list[int]


def subscriptions(
    assignors: Sequence[str], topics: Iterable[str], owned: Owned, previous: Owned, generation: int
) -> list[JoinProtocol]:
    """Return one subscription for each assignor.

    `owned` are the partitions that the member still owns. `previous` are those that it received in `generation`.
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
    """Return the assignor's view of a member from the bytes of its JoinGroup. Raises ProtocolError."""
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
    """Parse the user data of any client. Return empty user data if no known format fits."""
    for version in reversed(StickyUserData.versions):
        with suppress(ProtocolError):
            return StickyUserData.decode(data, version)
    with suppress(ProtocolError):
        return StickyUserData(generation=CooperativeUserData.decode(data, 0).generation)
    return StickyUserData()


def assign(assignor: str, members: Sequence[JoinedMember], counts: Mapping[str, int]) -> dict[str, bytes]:
    """Run the assignor. Return the encoded assignment of each member, by member id.

    Raises ProtocolError if the bytes of a member are not a subscription.
    """
    assignment = ASSIGNORS[assignor].assign([subscribed_member(assignor, member) for member in members], counts)
    return {
        member_id: ConsumerProtocolAssignment(
            assigned_partitions=_by_topic(ConsumerProtocolAssignment.TopicPartition, owned)
        ).versioned(ASSIGNMENT_VERSION)
        for member_id, owned in assignment.items()
    }


def subscribed_topics(members: Iterable[JoinedMember]) -> frozenset[str]:
    """Return all topics that at least one member reads. Raises ProtocolError."""
    return frozenset().union(*(ConsumerProtocolSubscription.parse(member.metadata)[0].topics for member in members))


def parse_assignment(data: bytes | memoryview) -> Owned:
    """Return the partitions in an encoded assignment. Raises ProtocolError.

    Some leaders send no bytes for a member that receives no partitions.
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
