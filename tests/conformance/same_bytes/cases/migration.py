"""Test cases for the online migration: upgrades from classic to KIP-848 groups, mixed groups, and downgrades.

In each case, one member with the classic protocol is in a Stable group, in generation 1, and owns all partitions of a
topic with three partitions. Most cases then let a member with the KIP-848 protocol join.
"""

from __future__ import annotations

from typing import Any

from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest

from ..case import Case, Step, captured, case
from .consumer_groups import ID, OTHER, beat, describe
from .consumer_groups import join as join_new
from .groups import (
    ASSIGNMENT,
    RANGE,
    SUBSCRIPTION,
    Leaver,
    heartbeat,
    join,
    joined,
    leave,
    member_of,
    static,
    sync,
)

ME, SECOND = captured("member"), captured("second")
FULL = ASSIGNMENT[:13] + bytes.fromhex("00000003 00000000 00000001 00000002 ffffffff")  # all three partitions
NEWEST = {
    kind: {"api_key": kind.api_key, "versions": str(kind.versions[-1])}
    for kind in (
        ConsumerGroupDescribeRequest,
        ConsumerGroupHeartbeatRequest,
        DescribeGroupsRequest,
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        OffsetCommitRequest,
        SyncGroupRequest,
    )
}


def owning(**options: Any) -> list[Step]:
    """Return the steps in which a single member joins its group and gets all partitions of topic "three"."""
    protocol = {
        "protocol_type": options.get("protocol_type", "consumer"),
        "protocol_name": next(iter(options.get("protocols", RANGE))),
    }
    return [*joined(**options), Step(sync(ME, 1, {ME: FULL}, **protocol))]


MIXED = [*owning(), Step(join_new(), capture={"epoch": lambda answer: answer.member_epoch})]
REJOINED = [*MIXED, Step(join(ME)), Step(sync(ME, 2, {}))]
USER_DATA = ASSIGNMENT[:-4] + bytes.fromhex("00000001") + b"x"
COOPERATIVE = {"cooperative-sticky": bytes.fromhex("0001") + SUBSCRIPTION[2:] + bytes.fromhex("00000000")}


def about(kind: Any, name: str, *steps: Any, **options: Any) -> Case:
    return case(f"migration: {name}", *steps, **{**NEWEST[kind], **options})


def commit(member: Any, generation: int) -> OffsetCommitRequest:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id="<name>",
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=[topic(name="three", partitions=[partition])],
    )


UPGRADE = [
    about(ConsumerGroupDescribeRequest, "mixed", *MIXED, describe("<name>")),
    about(ConsumerGroupDescribeRequest, "rejoined", *REJOINED, describe("<name>")),
    about(ConsumerGroupHeartbeatRequest, "no epoch 0", *owning(), beat(1)),
    about(ConsumerGroupHeartbeatRequest, "leave", *owning(), beat(-1)),
    about(ConsumerGroupHeartbeatRequest, "not synced", *joined(), join_new(), ignored=("assignment",)),
    about(ConsumerGroupHeartbeatRequest, "user data", *joined(), sync(ME, 1, {ME: USER_DATA}), join_new()),
    about(ConsumerGroupHeartbeatRequest, "malformed assignment", *joined(), sync(ME, 1, {ME: b"what?"}), join_new()),
    about(ConsumerGroupHeartbeatRequest, "malformed subscription", *owning(protocols={"range": b"?"}), join_new()),
    about(ConsumerGroupHeartbeatRequest, "connect", *owning(protocol_type="connect"), join_new()),
    about(ConsumerGroupHeartbeatRequest, "static", *static(), join_new(instance_id="instance")),
    about(ConsumerGroupHeartbeatRequest, "after rejoining", *REJOINED, beat(2)),
    about(DescribeGroupsRequest, "mixed, described as classic", *MIXED, DescribeGroupsRequest(groups=["<name>"])),
]
MEMBERS = [
    about(HeartbeatRequest, "asked to rejoin", *MIXED, heartbeat(ME)),
    about(HeartbeatRequest, "rejoined", *REJOINED, heartbeat(ME, 2)),
    about(HeartbeatRequest, "old generation", *REJOINED, heartbeat(ME, 1)),
    about(HeartbeatRequest, "unknown member", *MIXED, heartbeat("nobody")),
    about(HeartbeatRequest, "unknown instance", *MIXED, heartbeat(ME, group_instance_id="another")),
    about(HeartbeatRequest, "member of the new protocol", *MIXED, heartbeat(ID, 2)),
    about(JoinGroupRequest, "rejoin", *MIXED, join(ME)),
    about(JoinGroupRequest, "rejoin twice", *MIXED, join(ME), join(ME)),
    about(JoinGroupRequest, "new member", *MIXED, Step(join(), capture={"second": member_of}), join(SECOND)),
    about(JoinGroupRequest, "own id", *MIXED, join("my-own-id"), heartbeat("my-own-id", 3)),
    about(JoinGroupRequest, "other protocols", *MIXED, join(protocols={"roundrobin": SUBSCRIPTION})),
    about(JoinGroupRequest, "more protocols", *MIXED, join(ME, {"roundrobin": SUBSCRIPTION, **RANGE})),
    about(JoinGroupRequest, "no protocols", *MIXED, join(protocols={})),
    about(JoinGroupRequest, "connect", *MIXED, join(protocol_type="connect")),
    about(JoinGroupRequest, "malformed subscription", *MIXED, join(ME, {"range": b"?"})),
    about(JoinGroupRequest, "static", *MIXED, join(group_instance_id="instance")),
    about(JoinGroupRequest, "static, unknown", *MIXED, join("nobody", group_instance_id="instance")),
    about(JoinGroupRequest, "a group of the new protocol", join_new(), join("my-own-id")),
    about(JoinGroupRequest, "cooperative", *owning(protocols=COOPERATIVE), join_new(), join(ME, COOPERATIVE)),
    about(SyncGroupRequest, "rejoined", *MIXED, join(ME), sync(ME, 2, {})),
    about(SyncGroupRequest, "asked to rejoin", *MIXED, sync(ME)),
    about(SyncGroupRequest, "wrong generation", *REJOINED, sync(ME, 1, {})),
    about(SyncGroupRequest, "unknown member", *MIXED, sync("nobody")),
    about(SyncGroupRequest, "member of the new protocol", *MIXED, sync(ID, 2, {})),
    about(SyncGroupRequest, "other protocol", *REJOINED, sync(ME, 2, {}, protocol_name="roundrobin")),
    about(SyncGroupRequest, "other protocol type", *REJOINED, sync(ME, 2, {}, protocol_type="connect")),
    about(LeaveGroupRequest, "classic member", *MIXED, leave(Leaver(member_id=ME)), describe("<name>")),
    about(LeaveGroupRequest, "member of the new protocol", *MIXED, leave(Leaver(member_id=ID)), describe("<name>")),
    about(LeaveGroupRequest, "unknown member", *MIXED, leave(Leaver(member_id="nobody"))),
    about(
        LeaveGroupRequest,
        "instance of the new protocol",
        *owning(),
        join_new(instance_id="instance"),
        leave(Leaver(group_instance_id="instance")),
        describe("<name>"),
    ),
    about(OffsetCommitRequest, "generation", *REJOINED, commit(ME, 2), versions="8"),
    about(OffsetCommitRequest, "old generation", *REJOINED, commit(ME, 1), versions="8"),
    about(OffsetCommitRequest, "member of the new protocol", *MIXED, commit(ID, 2), versions="8"),
]
DOWNGRADE = [
    about(HeartbeatRequest, "back", *REJOINED, beat(-1), heartbeat(ME, 2)),
    about(HeartbeatRequest, "back, never rejoined", *MIXED, beat(-1), heartbeat(ME)),
    about(JoinGroupRequest, "back", *REJOINED, beat(-1), join(ME), sync(ME, 3)),
    about(DescribeGroupsRequest, "back", *REJOINED, beat(-1), DescribeGroupsRequest(groups=["<name>"])),
    about(
        DescribeGroupsRequest,
        "back, rejoined",
        *REJOINED,
        beat(-1),
        join(ME),
        sync(ME, 3),
        DescribeGroupsRequest(groups=["<name>"]),
    ),
    about(ConsumerGroupDescribeRequest, "back", *REJOINED, beat(-1), describe("<name>")),
    about(ConsumerGroupHeartbeatRequest, "back and forth", *REJOINED, beat(-1), join_new(OTHER)),
]
CASES: list[Case] = [*UPGRADE, *MEMBERS, *DOWNGRADE]
