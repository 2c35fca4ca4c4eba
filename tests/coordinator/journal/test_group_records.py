"""Tests of the encoder and the decoder for the records of `__consumer_offsets`.

If the bytes of a record are invalid, the decoder must raise ProtocolError and no other exception.
"""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.coordinator.journal.records import (
    KEYS,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownRecordType,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from hmb.protocol.errors import ProtocolError
from tests.protocol.strategies import messages

KEY = OffsetCommitKey(group="g", topic="weather", partition=3)
TOPIC_ID = UUID(int=7)


def test_a_key_begins_with_its_record_type() -> None:
    assert encode_key(KEY).hex(" ", 1) == "00 01 00 01 67 00 07 77 65 61 74 68 65 72 00 00 00 03"
    assert encode_key(GroupMetadataKey(group="g")).hex(" ", 1) == "00 02 00 01 67"


@pytest.mark.parametrize(
    ("version", "wire"),
    [
        (0, "0000 0000000000000009 0001 6d 0000000000000005"),
        (1, "0001 0000000000000009 0001 6d 0000000000000005 0000000000000006"),
        (2, "0002 0000000000000009 0001 6d 0000000000000005"),
        (3, "0003 0000000000000009 00000002 0001 6d 0000000000000005"),
        (4, f"0004 0000000000000009 00000002 02 6d 0000000000000005 01 00 10 {TOPIC_ID.hex}"),
    ],
)
def test_a_committed_offset_in_each_version(version: int, wire: str) -> None:
    value = OffsetCommitValue(
        offset=9, leader_epoch=2, metadata="m", commit_timestamp=5, expire_timestamp=6, topic_id=TOPIC_ID
    )
    assert encode_value(value, version) == bytes.fromhex(wire)
    decoded = decode_value(KEY, bytes.fromhex(wire))
    assert (decoded.offset, decoded.metadata, decoded.commit_timestamp) == (9, "m", 5)
    assert decoded.leader_epoch == (2 if version >= 3 else -1)
    assert decoded.expire_timestamp == (6 if version == 1 else -1)
    assert decoded.topic_id == (TOPIC_ID if version == 4 else UUID(int=0))


def test_new_records_are_written_in_the_versions_of_kafka_43() -> None:
    assert encode_value(OffsetCommitValue())[:2] == b"\0\4"
    assert encode_value(GroupMetadataValue(protocol=None, leader=None))[:2] == b"\0\3"
    assert {key.value.written for key in KEYS.values()} == {0, 3, 4}


def test_a_member_that_uses_the_classic_protocol() -> None:
    member = ConsumerGroupMemberMetadataValue(server_assignor=None, classic_member_metadata=None)
    assert encode_value(member).endswith(bytes.fromhex("ffffffff 00 01 00 01 00")), "null is written, as Kafka does"
    member.classic_member_metadata = member.ClassicMemberMetadata()
    assert encode_value(member).endswith(bytes.fromhex("ffffffff 00 00"))
    member.classic_member_metadata.session_timeout_ms = 1
    assert encode_value(member).endswith(bytes.fromhex("01 00 07 01 00000001 01 00"))


@pytest.mark.parametrize("key", KEYS.values())
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_round_trip(key: type[Key], data: st.DataObject) -> None:
    record_key = data.draw(messages(key, 0))
    assert decode_key(encode_key(record_key)) == record_key
    version = data.draw(st.sampled_from(key.value.versions))
    value = data.draw(messages(key.value, version))
    assert decode_value(record_key, encode_value(value, version)) == value


@given(data=st.binary(max_size=60))
@settings(deadline=None)
def test_random_bytes(data: bytes) -> None:
    for decode in (decode_key, lambda raw: decode_value(KEY, raw)):
        try:
            decode(data)
        except ProtocolError:
            continue


def test_unknown_and_damaged_records_raise_different_errors() -> None:
    with pytest.raises(UnknownRecordType, match="record type 99"):
        decode_key(b"\0\x63rest")
    for damaged in (b"", b"\0", b"\0\1\0\5g", encode_key(KEY) + b"\0"):
        with pytest.raises(ProtocolError) as caught:
            decode_key(damaged)
        assert not isinstance(caught.value, UnknownRecordType)
    with pytest.raises(ProtocolError, match="OffsetCommitValue has no version 5"):
        decode_value(KEY, b"\0\5")
