"""Test cases for the APIs of share groups: invalid epochs, sessions, ids and offsets (KIP-932)."""

from __future__ import annotations

from typing import Any

from hmb.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from hmb.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from hmb.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from hmb.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from hmb.protocol.messages.share_fetch import ShareFetchRequest
from hmb.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from ..case import NOBODYS_ID, Case, Step, case, id_of
from .consumer_groups import ID
from .groups import stable

Described = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
Altered = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
Deleted = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
Fetched, Acknowledged = ShareFetchRequest.FetchTopic, ShareAcknowledgeRequest.AcknowledgeTopic


def beat(epoch: int, member: str = ID, **options: Any) -> ShareGroupHeartbeatRequest:
    fields = {"group_id": "<name>", "member_id": member, "member_epoch": epoch, **options}
    return ShareGroupHeartbeatRequest(**fields)


def join(member: str = ID, **options: Any) -> ShareGroupHeartbeatRequest:
    return beat(0, member, **{"subscribed_topic_names": ["three"], **options})


def describe(*groups: str) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=list(groups))


def offsets(group: str, *topics: tuple[str, list[int]], every: bool = False) -> DescribeShareGroupOffsetsRequest:
    kind = Described.DescribeShareGroupOffsetsRequestTopic
    named = [kind(topic_name=topic, partitions=numbers) for topic, numbers in topics]
    return DescribeShareGroupOffsetsRequest(groups=[Described(group_id=group, topics=None if every else named)])


def alter(group: str, *changes: tuple[str, int, int]) -> AlterShareGroupOffsetsRequest:
    kind = Altered.AlterShareGroupOffsetsRequestPartition
    topics = [
        Altered(topic_name=topic, partitions=[kind(partition_index=partition, start_offset=offset)])
        for topic, partition, offset in changes
    ]
    return AlterShareGroupOffsetsRequest(group_id=group, topics=topics)


def delete(group: str, *topics: str) -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(group_id=group, topics=[Deleted(topic_name=name) for name in topics])


def fetch(epoch: int, topic_id: Any = None, **options: Any) -> ShareFetchRequest:
    partitions = [Fetched.FetchPartition(partition_index=0)]
    fields = {
        "group_id": "<name>",
        "member_id": ID,
        "share_session_epoch": epoch,
        "max_records": 10,
        "batch_size": 10,
        "topics": [Fetched(topic_id=id_of("empty") if topic_id is None else topic_id, partitions=partitions)],
        **options,
    }
    return ShareFetchRequest(**fields)


def acknowledge(epoch: int, types: list[int], **options: Any) -> ShareAcknowledgeRequest:
    kind = Acknowledged.AcknowledgePartition
    batch = kind.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=types)
    partition = kind(partition_index=0, acknowledgement_batches=[batch])
    topics = [Acknowledged(topic_id=id_of("empty"), partitions=[partition])]
    fields = {"group_id": "<name>", "member_id": ID, "share_session_epoch": epoch, "topics": topics, **options}
    return ShareAcknowledgeRequest(**fields)


JOINED = Step(join())
# The partitions of a share group are initialized in the background. So a response may or may not contain an assignment,
# and the epochs may differ.
ASSIGNED = ["assignment", "member_epoch", "group_epoch", "assignment_epoch"]
BEAT = [
    case("join", join(), ignored=ASSIGNED),
    case("join without id", join("")),
    case("join again", JOINED, join(), ignored=ASSIGNED),
    *(case(f"join, epoch {epoch}", JOINED, beat(epoch), ignored=ASSIGNED) for epoch in (5, -2, -3, 2**31 - 1)),
    case("leave", JOINED, beat(-1), ignored=ASSIGNED),
    case("leave, then beat", JOINED, beat(-1), beat(1), ignored=ASSIGNED),
    case("leave twice", JOINED, beat(-1), beat(-1), ignored=ASSIGNED),
    case("unknown member", JOINED, beat(1, "nobody"), ignored=ASSIGNED),
    case("unknown member leaves", JOINED, beat(-1, "nobody"), ignored=ASSIGNED),
    case("unknown group", beat(1)),
    case("unknown group, leave", beat(-1)),
    case("empty group id", join(group_id="")),
    case("empty member id, beat", beat(1, "")),
    case("no subscription", join(subscribed_topic_names=None)),
    case("empty subscription", join(subscribed_topic_names=[])),
    case("subscribed to nobody", join(subscribed_topic_names=["nobody"])),
    case("rack", join(rack_id="r1"), ignored=ASSIGNED),
    case("rack, empty", join(rack_id=""), ignored=ASSIGNED),
    case("classic group, stable", *stable(), join()),
]
DESCRIBE = [
    case("none", describe()),
    case("unknown", describe("nobody")),
    case("empty id", describe("")),
    case("unknown twice", describe("nobody", "nobody")),
    case("left", JOINED, beat(-1), describe("<name>"), ignored=ASSIGNED),
    case("classic group", *stable(), describe("<name>")),
]
OFFSETS = [
    case("none", DescribeShareGroupOffsetsRequest()),
    case("unknown group", offsets("<name>", ("three", [0]))),
    case("unknown group, all topics", offsets("<name>", every=True)),
    case("empty group id", offsets("", ("three", [0]))),
    case("unknown topic", JOINED, offsets("<name>", ("nobody", [0])), ignored=ASSIGNED),
    case("classic group", *stable(), offsets("<name>", ("three", [0]))),
]
ALTER = [
    case("unknown group", alter("<name>", ("three", 0, 0))),
    case("empty group id", alter("", ("three", 0, 0))),
    case("unknown topic", alter("<name>", ("nobody", 0, 0))),
    case("no topics", alter("<name>")),
    case("partition 9", alter("<name>", ("three", 9, 0))),
    case("group with a member", JOINED, alter("<name>", ("three", 0, 0)), ignored=ASSIGNED),
    case("classic group", *stable(), alter("<name>", ("three", 0, 0))),
]
DELETE = [
    case("unknown group", delete("<name>", "three")),
    case("empty group id", delete("", "three")),
    case("no topics", delete("<name>")),
    case("unknown topic", JOINED, beat(-1), delete("<name>", "nobody"), ignored=ASSIGNED),
    case("group with a member", JOINED, delete("<name>", "three"), ignored=ASSIGNED),
    case("classic group", *stable(), delete("<name>", "three")),
]
FETCH = [
    *(case(f"no session, epoch {epoch}", fetch(epoch)) for epoch in (1, 5, -1)),
    case("empty member id", fetch(0, member_id="")),
    case("member id of a few letters", fetch(0, member_id="abc")),
    case("no member id", fetch(0, member_id=None)),
    case("no group id", fetch(0, group_id=None)),
    case("empty group id", fetch(0, group_id="")),
    case("unknown topic id", fetch(0, NOBODYS_ID)),
    case("no topics", fetch(0, topics=[])),
]
ACKNOWLEDGE = [
    *(case(f"no session, epoch {epoch}", acknowledge(epoch, [1])) for epoch in (0, 1, 5, -1)),
    case("no session, type 9", acknowledge(1, [9])),
    case("no member id", acknowledge(1, [1], member_id=None)),
    case("empty member id", acknowledge(1, [1], member_id="")),
    case("no group id", acknowledge(1, [1], group_id=None)),
]
CASES: list[Case] = [*BEAT, *DESCRIBE, *OFFSETS, *ALTER, *DELETE, *FETCH, *ACKNOWLEDGE]
