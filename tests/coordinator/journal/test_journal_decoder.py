"""Tests that HMB shows the coordinator's records as JSON in the same format as Kafka's tool DumpLogSegments."""

from __future__ import annotations

from uuid import UUID

from hmb.coordinator.journal.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
    encode_key,
    encode_value,
)
from hmb.coordinator.journal_decoder import decode_offsets
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from hmb.records import Record
from hmb.storage.dump.entries import Decoded

COMMIT = OffsetCommitKey(group="g", topic="t", partition=0)


def decoded(key: Key, value: Value | None, version: int | None = None) -> Decoded:
    encoded = None if value is None else encode_value(value, version)
    return decode_offsets(Record(offset=7, key=encode_key(key), value=encoded))


def test_fields_that_a_version_does_not_have_are_left_out() -> None:
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9, expire_timestamp=10)
    key = {"type": "1", "data": {"group": "g", "topic": "t", "partition": 0}}
    assert decoded(COMMIT, value, 1) == Decoded(
        key, {"version": "1", "data": {"offset": 5, "metadata": "m", "commitTimestamp": 9, "expireTimestamp": 10}}
    )
    data = {"offset": 5, "leaderEpoch": -1, "metadata": "m", "commitTimestamp": 9}
    assert decoded(COMMIT, value, 4) == Decoded(key, {"version": "4", "data": data})


def test_a_tagged_field_is_shown_unless_it_has_its_default() -> None:
    value = OffsetCommitValue(topic_id=UUID(int=1))
    shown = decoded(COMMIT, value).value
    assert isinstance(shown, dict) and shown["data"]["topicId"] == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_a_tombstone() -> None:
    assert decoded(COMMIT, None).value == "<DELETE>"


def group(protocol_type: str, subscription: bytes, assignment: bytes) -> dict[str, object]:
    member = GroupMetadataValue.MemberMetadata(member_id="m", subscription=subscription, assignment=assignment)
    value = GroupMetadataValue(protocol_type=protocol_type, protocol="range", leader="m", members=[member])
    shown = decoded(GroupMetadataKey(group="g"), value).value
    assert isinstance(shown, dict)
    (shown_member,) = shown["data"]["members"]
    return {name: shown_member[name] for name in ("memberId", "groupInstanceId", "subscription", "assignment")}


def test_subscriptions_and_assignments_are_decoded() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], user_data=b"u").versioned(1)
    partition = ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 1])
    assignment = ConsumerProtocolAssignment(assigned_partitions=[partition]).versioned(1)
    assert group("consumer", subscription, assignment) == {
        "memberId": "m",
        "groupInstanceId": None,
        "subscription": {"topics": ["t"], "userData": "dQ==", "ownedPartitions": []},
        "assignment": {"assignedPartitions": [{"topic": "t", "partitions": [0, 1]}], "userData": None},
    }


def test_other_bytes_of_members_are_base64() -> None:
    assert group("connect", b"\0\1", b"")["subscription"] == "AAE="
    assert group("consumer", b"\0", b"\0\0") | {"memberId": ""} == {
        "memberId": "",
        "groupInstanceId": None,
        "subscription": "AA==",
        "assignment": "AAA=",
    }


def test_structs_inside_structs() -> None:
    partitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(partitions=[1], assignment_epochs=[2])
    value = ConsumerGroupCurrentMemberAssignmentValue(assigned_partitions=[partitions])
    shown = decoded(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"), value).value
    assert isinstance(shown, dict)
    zero = "AAAAAAAAAAAAAAAAAAAAAA"
    assert shown["data"]["assignedPartitions"] == [{"topicId": zero, "partitions": [1], "assignmentEpochs": [2]}]
    assert shown["data"]["partitionsPendingRevocation"] == []


def test_bytes_that_cannot_be_decoded_are_reported() -> None:
    unknown = decode_offsets(Record(offset=7, key=b"\0\x63", value=b""))
    assert unknown == Decoded("Unknown record type 99 at offset 7, skipping.", None)
    for record in (Record(offset=7, key=b"k"), Record(offset=7), Record(offset=7, key=encode_key(COMMIT), value=b"\0")):
        assert str(decode_offsets(record).key).startswith("Error at offset 7, skipping. ")
