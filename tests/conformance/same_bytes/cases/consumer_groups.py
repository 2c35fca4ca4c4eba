"""Test cases for ConsumerGroupHeartbeat and ConsumerGroupDescribe: invalid epochs, ids and subscriptions (KIP-848)."""

from __future__ import annotations

from typing import Any

from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from ..case import NOBODYS_ID, Case, Step, captured, case, id_of
from .groups import stable

Owned = ConsumerGroupHeartbeatRequest.TopicPartitions
# A member id: 16 bytes in base64. From version 1 of ConsumerGroupHeartbeat on, clients generate their member ids.
ID = "AAAAAAAAAAAAAAAAAAAAAQ"
JOIN = {"subscribed_topic_names": ["three"], "rebalance_timeout_ms": 30_000, "topic_partitions": []}


def beat(epoch: Any, member: Any = ID, **options: Any) -> ConsumerGroupHeartbeatRequest:
    fields = {"group_id": "<name>", "member_id": member, "member_epoch": epoch, **options}
    return ConsumerGroupHeartbeatRequest(**fields)


def join(member: Any = ID, **options: Any) -> ConsumerGroupHeartbeatRequest:
    return beat(0, member, **{**JOIN, **options})


def owns(*numbers: int, topic: str = "three", topic_id: Any = None) -> list[Owned]:
    return [Owned(topic_id=id_of(topic) if topic_id is None else topic_id, partitions=list(numbers))]


def describe(*groups: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


JOINED = [
    Step(join(), capture={"member": lambda answer: answer.member_id, "epoch": lambda answer: answer.member_epoch})
]
ME, EPOCH = captured("member"), captured("epoch")
OTHER = "AAAAAAAAAAAAAAAAAAAAAg"
BEAT = [
    case("join", join()),
    case("join without id", join("")),
    case("join, then beat", *JOINED, beat(EPOCH, ME)),
    case("join, then own", *JOINED, beat(EPOCH, ME, topic_partitions=owns(0, 1, 2))),
    case("join, own some", *JOINED, beat(EPOCH, ME, topic_partitions=owns(0))),
    case("join, own another's", *JOINED, beat(EPOCH, ME, topic_partitions=owns(0, topic="empty"))),
    case("join, own what nobody knows", *JOINED, beat(EPOCH, ME, topic_partitions=owns(0, topic_id=NOBODYS_ID))),
    case("join, own a negative partition", *JOINED, beat(EPOCH, ME, topic_partitions=owns(-1))),
    case("join again", *JOINED, join(ME)),
    *(case(f"join, epoch {epoch}", *JOINED, beat(epoch, ME)) for epoch in (1, 2, 3, 5, -3, 2**31 - 1)),
    case("leave", *JOINED, beat(-1, ME)),
    case("leave, then beat", *JOINED, beat(-1, ME), beat(EPOCH, ME)),
    case("leave twice", *JOINED, beat(-1, ME), beat(-1, ME)),
    case("leave as static, without instance", *JOINED, beat(-2, ME)),
    case("unknown member", *JOINED, beat(1, "nobody")),
    case("unknown member leaves", *JOINED, beat(-1, "nobody")),
    case("unknown group", beat(1)),
    case("unknown group, leave", beat(-1)),
    case("empty group id", join(group_id="")),
    case("empty member id, beat", beat(1, "")),
    case("empty member id, leave", beat(-1, "")),
    case("member id of spaces", join("  ")),
    case("group id of spaces", join(group_id="  ")),
    case("no rebalance timeout", join(rebalance_timeout_ms=-1)),
    case("rebalance timeout 0", join(rebalance_timeout_ms=0)),
    case("rebalance timeout -5", join(rebalance_timeout_ms=-5)),
    case("owned partitions missing", join(topic_partitions=None)),
    case("owns at once", join(topic_partitions=owns(0))),
    case("no subscription", join(subscribed_topic_names=None)),
    case("empty subscription", join(subscribed_topic_names=[])),
    case("subscribed to nobody", join(subscribed_topic_names=["nobody"])),
    case("subscribed to a bad name", join(subscribed_topic_names=["a/b"])),
    case("subscribed twice", join(subscribed_topic_names=["three", "three"])),
    case("other subscription", *JOINED, beat(EPOCH, ME, subscribed_topic_names=["empty"])),
    case("regular expression", join(subscribed_topic_names=None, subscribed_topic_regex="thre+"), versions="1"),
    case("regular expression, broken", join(subscribed_topic_names=None, subscribed_topic_regex="(("), versions="1"),
    case("regular expression, empty", join(subscribed_topic_names=None, subscribed_topic_regex=""), versions="1"),
    case("regular expression and names", join(subscribed_topic_regex="empt.*"), versions="1"),
    *(case(f"assignor {name}", join(server_assignor=name)) for name in ("uniform", "range", "nobody", "")),
    case("instance", join(instance_id="instance")),
    case("instance, empty", join(instance_id="")),
    case("instance, leaves for good", Step(join(instance_id="instance")), beat(-1, instance_id="instance")),
    case("instance, leaves for a while", Step(join(instance_id="instance")), beat(-2, instance_id="instance")),
    case(
        "instance, comes back",
        Step(join(instance_id="instance")),
        beat(-2, instance_id="instance"),
        join(OTHER, instance_id="instance"),
    ),
    case("instance, taken", Step(join(instance_id="instance")), join(OTHER, instance_id="instance")),
    case("instance, wrong member", Step(join(instance_id="instance")), beat(1, "nobody", instance_id="instance")),
    case("instance, unknown", Step(join(instance_id="instance")), beat(1, instance_id="another")),
    case("rack", join(rack_id="r1")),
    case("rack, empty", join(rack_id="")),
    case("classic group, stable", *stable(), join(), ignored=("assignment",)),  # Kafka's choice depends on member ids.
]
OWNING = [*JOINED, Step(beat(EPOCH, ME, topic_partitions=owns(0, 1, 2)))]
SECOND_JOINS = Step(join(OTHER), capture={"later": lambda answer: answer.member_epoch})
TWO = [
    case("two members", *OWNING, SECOND_JOINS, beat(EPOCH, ME), beat(captured("later"), OTHER)),
    case("two members, range", *OWNING, join(OTHER, server_assignor="range"), beat(EPOCH, ME, server_assignor="range")),
    case(
        "two members, one gives up",
        *OWNING,
        SECOND_JOINS,
        Step(beat(EPOCH, ME), capture={"kept": lambda answer: answer.assignment.topic_partitions}),
        Step(beat(EPOCH, ME, topic_partitions=captured("kept")), capture={"epoch": lambda answer: answer.member_epoch}),
        beat(captured("later"), OTHER),
    ),
    case("two members, one leaves", *OWNING, SECOND_JOINS, beat(-1, ME), beat(captured("later"), OTHER)),
    case(
        "two members, described",
        *OWNING,
        SECOND_JOINS,
        describe("<name>"),
        api_key=ConsumerGroupHeartbeatRequest.api_key,
    ),
    case("two members of two topics", *OWNING, join(OTHER, subscribed_topic_names=["three", "two"]), beat(EPOCH, ME)),
]
DESCRIBE = [
    case("none", describe()),
    case("unknown", describe("nobody")),
    case("empty id", describe("")),
    case("unknown twice", describe("nobody", "nobody")),
    case("joined", *JOINED, beat(EPOCH, ME, topic_partitions=owns(0, 1, 2)), describe("<name>")),
    case("joined, owns nothing yet", *JOINED, describe("<name>")),
    case("operations", *JOINED, describe("<name>", operations=True)),
    case("left", *JOINED, beat(-1, ME), describe("<name>")),
    case("instance and rack", join(instance_id="instance", rack_id="r1"), describe("<name>")),
    case("classic group", *stable(), describe("<name>")),
]
CASES: list[Case] = [*BEAT, *TWO, *DESCRIBE]
