"""Tests of subscriptions and assignments: the bytes that Kafka 4.3.0's consumers and other clients send."""

from __future__ import annotations

import pytest

from hmb.client.group import member_metadata
from hmb.client.group.assignors import SubscribedMember
from hmb.client.group.member_metadata import JoinedMember, parse_assignment, subscribed_member, subscriptions
from hmb.protocol.consumer_protocol import ConsumerProtocolSubscription
from hmb.protocol.errors import ProtocolError
from hmb.protocol.topics import TopicPartition

OWNED = frozenset({TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 3)})
NONE: frozenset[TopicPartition] = frozenset()

# The assignors and ConsumerProtocol of Kafka 4.3.0 have written these bytes for OWNED in generation 7.
PARTITIONS = "00000002 000161 00000002 00000000 00000001 000162 00000001 00000003"
TOPICS = "00000002 000161 000162"
STICKY = f"0003 {TOPICS} 00000022 {PARTITIONS} 00000007 00000000 00000007 ffff"
COOPERATIVE = f"0003 {TOPICS} 00000004 00000007 {PARTITIONS} 00000007 ffff"
ASSIGNMENT = f"0003 {PARTITIONS} ffffffff"


@pytest.mark.parametrize(
    ("assignor", "owned", "wire"), [("sticky", NONE, STICKY), ("cooperative-sticky", OWNED, COOPERATIVE)]
)
def test_a_subscription_has_the_bytes_of_javas(assignor: str, owned: frozenset[TopicPartition], wire: str) -> None:
    (said,) = subscriptions([assignor], ["b", "a"], owned, OWNED, 7)
    assert (said.name, said.metadata) == (assignor, bytes.fromhex(wire))
    member = JoinedMember(member_id="m", group_instance_id="i", metadata=said.metadata)
    assert subscribed_member(assignor, member) == SubscribedMember("m", frozenset("ab"), "i", OWNED, 7)


def test_an_assignment_has_the_bytes_of_javas() -> None:
    member = JoinedMember(member_id="m", metadata=bytes.fromhex(COOPERATIVE))
    shares = member_metadata.assign("cooperative-sticky", [member], {"a": 2, "b": 4})
    assert parse_assignment(shares["m"]) == OWNED | {TopicPartition("b", number) for number in range(3)}
    shares = member_metadata.assign("range", [JoinedMember(member_id="m", metadata=b"\0\3" + b"\0" * 20)], {"a": 1})
    assert shares == {"m": bytes.fromhex("0003 00000000 ffffffff")}
    assert parse_assignment(bytes.fromhex(ASSIGNMENT)) == OWNED
    assert parse_assignment(b"") == NONE


def as_member(version: int, user_data: str | None, owned: bool = True) -> JoinedMember:
    topic = ConsumerProtocolSubscription.TopicPartition
    said = ConsumerProtocolSubscription(
        topics=["a", "b"],
        user_data=None if user_data is None else bytes.fromhex(user_data),
        owned_partitions=[topic(topic="a", partitions=[0, 1]), topic(topic="b", partitions=[3])] if owned else [],
    )
    return JoinedMember(member_id="m", metadata=said.versioned(version))


@pytest.mark.parametrize(
    ("user_data", "generation"),
    [(None, -1), ("00000009", 9), (f"{PARTITIONS} 00000009", 9), (PARTITIONS, -1), ("ff", -1), ("", -1)],
)
def test_a_cooperative_member_before_kip_792_sends_its_generation_in_one_of_two_formats_or_not(
    user_data: str | None, generation: int
) -> None:
    found = subscribed_member("cooperative-sticky", as_member(1, user_data))
    assert (found.owned, found.generation) == (OWNED, generation)


@pytest.mark.parametrize(
    ("user_data", "owned", "generation"),
    [(f"{PARTITIONS} 00000009", OWNED, 9), (PARTITIONS, OWNED, -1), (None, NONE, -1), ("00ff00", NONE, -1)],
)
def test_a_sticky_member_sends_its_previous_partitions_in_one_of_two_layouts_or_not(
    user_data: str | None, owned: frozenset[TopicPartition], generation: int
) -> None:
    found = subscribed_member("sticky", as_member(0, user_data))
    assert (found.owned, found.generation) == (owned, generation)


def test_the_topics_of_a_group_are_those_of_all_its_members() -> None:
    first, second = (subscriptions(["range"], topics, NONE, NONE, -1)[0].metadata for topics in ("ab", "bc"))
    members = [JoinedMember(member_id="1", metadata=first), JoinedMember(member_id="2", metadata=second)]
    assert member_metadata.subscribed_topics(members) == {"a", "b", "c"}
    with pytest.raises(ProtocolError):
        member_metadata.subscribed_topics([JoinedMember(member_id="3", metadata=b"?")])
