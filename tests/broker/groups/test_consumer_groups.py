"""Tests of the broker's KIP-848 groups: members join, commit offsets and leave, and admins list and delete groups.

A broker can have KIP-848 groups and classic groups at the same time. After a restart, a KIP-848 group continues.

These tests pass the bytes of each request directly to the broker's dispatcher, without a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hmb.protocol.consumer_protocol import ConsumerProtocolSubscription
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest
from hmb.storage.log import Log
from tests.broker.conftest import Asker
from tests.broker.groups.test_groups import join as join_classic
from tests.broker.groups.test_groups import leave as leave_classic

MakeAsker = Callable[..., Asker]
OwnedPartitions = ConsumerGroupHeartbeatRequest.TopicPartitions


@pytest.fixture
def ask(make_asker: MakeAsker) -> Iterator[Asker]:
    ask = make_asker(offsets_topic_num_partitions="2")
    ask(FindCoordinatorRequest(key="g"), 0)
    ask.broker.topics.create("t", 3)
    yield ask


def beat(ask: Asker, epoch: int, member: str = "m", *, version: int = 1, **options: Any) -> Any:
    return ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch, **options), version)


def join(ask: Asker, member: str = "m", *, version: int = 1, **options: Any) -> Any:
    fields = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    return beat(ask, 0, member, version=version, **{**fields, **options})


def owned(answer: Any) -> list[int]:
    return [number for topic in answer.assignment.topic_partitions for number in topic.partitions]


def described(ask: Asker, version: int = 1) -> Any:
    return ask(ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True), version).groups[0]


def listed(ask: Asker, **filters: Any) -> list[tuple[str, str, str, str]]:
    groups = ask(ListGroupsRequest(**filters), 5).groups
    return [(group.group_id, group.protocol_type, group.group_state, group.group_type) for group in groups]


@pytest.mark.parametrize("version", ConsumerGroupHeartbeatRequest.versions)
def test_a_member_joins_lives_and_leaves(ask: Asker, version: int) -> None:
    joined = join(ask, "m" if version else "", version=version)
    assert (joined.error_code, owned(joined), joined.heartbeat_interval_ms) == (0, [0, 1, 2], 5_000)
    assert joined.member_id == "m" or len(joined.member_id) == 22
    alive = beat(ask, joined.member_epoch, joined.member_id, version=version)
    assert (alive.error_code, alive.member_epoch, alive.assignment) == (0, joined.member_epoch, None)
    left = beat(ask, -1, joined.member_id, version=version)
    assert (left.error_code, left.member_epoch) == (0, -1)
    gone = beat(ask, joined.member_epoch, joined.member_id, version=version)
    assert (gone.error_code, gone.error_message) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {joined.member_id} is not a member of group g.",
    )


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": [OwnedPartitions(partitions=[0])]}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "(("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_invalid_heartbeats_create_no_group(ask: Asker, options: dict[str, Any], code: ErrorCode) -> None:
    fields = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 1, "topic_partitions": []}
    request = ConsumerGroupHeartbeatRequest(**{"subscribed_topic_names": ["t"], **fields, **options})
    assert ask(request, 1).error_code == code
    assert listed(ask) == []


def test_topic_changes_are_noticed_at_the_next_heartbeat(ask: Asker) -> None:
    joined = join(ask, subscribed_topic_regex="u.*")
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=5, assignments=None)
    assert ask(CreatePartitionsRequest(topics=[wanted]), 3).results[0].error_code == 0
    grown = beat(ask, joined.member_epoch)
    assert owned(grown) == [0, 1, 2, 3, 4]
    topic = ask.broker.topics.create("u2", 1)
    assert len(owned(beat(ask, grown.member_epoch))) == 6
    ask.broker.topics.delete([topic])
    assert len(owned(beat(ask, grown.member_epoch + 1))) == 5


@pytest.mark.parametrize("version", ConsumerGroupDescribeRequest.versions)
def test_describe_returns_the_current_and_the_target_assignment(ask: Asker, version: int) -> None:
    first = join(ask, instance_id="i", rack_id="r")
    join(ask, "n", server_assignor="range")
    group = described(ask, version)
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Reconciling", "range")
    assert group.group_epoch == group.assignment_epoch == first.member_epoch + 1
    assert group.authorized_operations > 0
    member = next(member for member in group.members if member.member_id == "m")
    assert (member.instance_id, member.rack_id, member.member_epoch) == ("i", "r", first.member_epoch)
    assert (member.client_id, member.client_host, member.subscribed_topic_names) == ("test", "/192.0.2.1", ["t"])
    (has,), (target,) = member.assignment.topic_partitions, member.target_assignment.topic_partitions
    assert (has.topic_name, has.partitions, target.partitions) == ("t", [0, 1, 2], [0, 1])
    assert member.member_type == (1 if version else -1)


def test_describe_of_nothing_and_of_a_classic_group(ask: Asker) -> None:
    join_classic(ask, 9)
    group = described(ask)
    assert (group.error_code, group.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
    (unnamed,) = ask(ConsumerGroupDescribeRequest(group_ids=[""]), 0).groups
    assert (unnamed.error_code, unnamed.error_message) == (ErrorCode.INVALID_GROUP_ID, None)


def test_both_kinds_are_listed_and_chosen_by_type(ask: Asker) -> None:
    join(ask)
    join_classic(ask, 3, group_id="c")
    consumer, classic = ("g", "consumer", "Stable", "consumer"), ("c", "consumer", "CompletingRebalance", "classic")
    assert sorted(listed(ask)) == [classic, consumer]
    assert listed(ask, types_filter=["Consumer"]) == [consumer]
    assert listed(ask, types_filter=["classic"]) == [classic]
    assert listed(ask, types_filter=["share"]) == []
    assert listed(ask, states_filter=["stable"]) == [consumer]
    (group,) = ask(DescribeGroupsRequest(groups=["g"]), 6).groups
    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def test_a_group_is_deleted_when_it_is_empty(ask: Asker) -> None:
    join(ask)
    assert ask(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    beat(ask, -1)
    assert described(ask).group_state == "Empty"
    assert ask(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0
    assert described(ask).error_code == ErrorCode.GROUP_ID_NOT_FOUND


# -- groups of both protocols in one coordinator


def test_an_empty_classic_group_becomes_one_of_this_protocol_and_back(ask: Asker, make_asker: MakeAsker) -> None:
    member = join_classic(ask, 3)
    assert leave_classic(ask, 3, member) == 0
    assert listed(ask)[0][2:] == ("Empty", "classic")
    assert join(ask).error_code == 0
    assert listed(ask)[0][2:] == ("Stable", "consumer")
    beat(ask, -1)
    assert join_classic(ask, 3).error_code == 0
    assert listed(ask)[0][2:] == ("CompletingRebalance", "classic")
    ask.close()
    again = make_asker(offsets_topic_num_partitions="2")
    again.broker.groups.loaded.wait(30)
    assert listed(again) == [], "nothing of the one or the other is left on disk"


def test_a_policy_keeps_members_of_the_new_protocol_out_of_a_classic_group(make_asker: MakeAsker) -> None:
    ask = make_asker(group_consumer_migration_policy="disabled")
    ask(FindCoordinatorRequest(key="c"), 0)
    join_classic(ask, 3, group_id="c")
    fields: dict[str, Any] = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 1, "topic_partitions": []}
    answer = ask(ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", **fields), 1)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Cannot upgrade classic group c to consumer group because online upgrade is disabled.",
    )
    unknown = ask(ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=1), 1)
    assert (unknown.error_code, unknown.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group c is not a consumer group.",
    )


def test_a_member_of_the_classic_protocol_joins_a_group_of_this_protocol(ask: Asker) -> None:
    join(ask)
    metadata = ConsumerProtocolSubscription(topics=["t"]).versioned(3)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    fields: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    refused = ask(JoinGroupRequest(protocol_type="connect", protocols=[protocol], **fields), 3)
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    joined = ask(JoinGroupRequest(protocol_type="consumer", protocols=[protocol], **fields), 9)
    assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
    fields["member_id"] = joined.member_id
    joined = ask(JoinGroupRequest(protocol_type="consumer", protocols=[protocol], **fields), 9)
    assert (joined.error_code, joined.leader, joined.members, joined.protocol_name) == (0, "", [], "range")
    fields = {"group_id": "g", "member_id": joined.member_id, "generation_id": joined.generation_id}
    assert ask(HeartbeatRequest(**fields), 4).error_code == 0
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    assert ask(SyncGroupRequest(**fields, **named), 5).error_code == 0
    assert sorted(member.member_type for member in described(ask, 1).members) == [0, 1]
    (leaving,) = ask(leave_request(joined.member_id), 5).members
    assert leaving.error_code == 0
    unknown = ask(HeartbeatRequest(group_id="g", member_id="m", generation_id=1), 4)
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID, "m does not use the classic protocol"
    (leaving,) = ask(leave_request("m"), 5).members
    assert (leaving.error_code, described(ask).group_state) == (0, "Empty"), "LeaveGroup removes m anyway"


def leave_request(member_id: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id="g", members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)])


# -- committed offsets


def commit(ask: Asker, epoch: int, offset: int, *, member: str = "m", version: int = 9) -> int:
    partition = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="t", topic_id=ask.broker.topics.all()[-1].id, partitions=[partition]
    )
    fields = {"group_id": "g", "member_id": member, "generation_id_or_member_epoch": epoch, "topics": [topic]}
    code: int = ask(OffsetCommitRequest(**fields), version).topics[0].partitions[0].error_code
    return code


def committed(ask: Asker, member: str | None = None, epoch: int = -1) -> tuple[int, list[int]]:
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", member_id=member, member_epoch=epoch, topics=None)
    (group,) = ask(OffsetFetchRequest(groups=[wanted]), 9).groups
    return group.error_code, [p.committed_offset for topic in group.topics for p in topic.partitions]


@pytest.mark.parametrize("version", [9, 10])
def test_members_commit_and_fetch_with_their_epochs(ask: Asker, version: int) -> None:
    epoch = join(ask).member_epoch
    assert commit(ask, epoch, 5, version=version) == 0
    assert committed(ask, "m", epoch) == committed(ask) == (0, [5])
    assert commit(ask, epoch + 1, 6, version=version) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(ask, epoch, 6, member="n", version=version) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(ask, -1, 6, member="", version=version) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(ask, "m", epoch + 1) == (ErrorCode.STALE_MEMBER_EPOCH, [])
    assert committed(ask, "n", epoch) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
    beat(ask, -1)
    assert commit(ask, -1, 7, member="", version=version) == 0
    assert committed(ask) == (0, [7])


def test_clients_with_an_older_offset_commit_have_no_member_epoch(ask: Asker) -> None:
    assert commit(ask, join(ask).member_epoch, 5, version=8) == ErrorCode.UNSUPPORTED_VERSION


# -- the journal of the groups


def test_a_group_continues_after_a_restart(ask: Asker, make_asker: MakeAsker) -> None:
    epoch = join(ask).member_epoch
    join(ask, "n", subscribed_topic_names=[], subscribed_topic_regex="t")
    commit(ask, epoch, 5)
    before = described(ask)
    ask.close()
    again = make_asker(offsets_topic_num_partitions="2")
    again.broker.groups.loaded.wait(30)
    assert described(again) == before
    assert committed(again, "m", epoch) == (0, [5])
    topic_id = again.broker.topics.all()[-1].id
    response = beat(again, epoch, topic_partitions=[OwnedPartitions(topic_id=topic_id, partitions=[0, 1, 2])])
    assert (response.error_code, response.member_epoch, len(owned(response))) == (0, epoch, 2)


def test_a_heartbeat_whose_change_cannot_be_written_has_no_effect(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = join(ask).member_epoch

    def full_disk(*_: object, **__: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "append_from_coordinator", full_disk)
        assert join(ask, "n").error_code == ErrorCode.NOT_COORDINATOR
        assert beat(ask, epoch).error_code == 0, "nothing is to be written for it"
    assert [member.member_id for member in described(ask).members] == ["m"]
    assert join(ask, "n").error_code == 0
