"""Tests of the encoding of subscriptions and assignments, in all known versions and in one unknown newer version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from hmb.protocol.errors import ProtocolError
from tests.protocol.strategies import messages

FULL = ConsumerProtocolSubscription(
    topics=["t"],
    user_data=b"u",
    owned_partitions=[ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=[3])],
    generation_id=7,
    rack_id="r",
)


@pytest.mark.parametrize(
    ("version", "wire"),
    [
        (0, "0000 00000001 0001 74 00000001 75"),
        (1, "0001 00000001 0001 74 00000001 75 00000001 0001 74 00000001 00000003"),
        (2, "0002 00000001 0001 74 00000001 75 00000001 0001 74 00000001 00000003 00000007"),
        (3, "0003 00000001 0001 74 00000001 75 00000001 0001 74 00000001 00000003 00000007 0001 72"),
    ],
)
def test_a_subscription_in_each_version(version: int, wire: str) -> None:
    assert FULL.versioned(version) == bytes.fromhex(wire)
    parsed, read_as = ConsumerProtocolSubscription.parse(bytes.fromhex(wire))
    assert read_as == version and parsed.versioned(version) == bytes.fromhex(wire)


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\0\x09" + FULL.versioned(3)[2:] + b"what it has added"
    assert ConsumerProtocolSubscription.parse(newer) == (FULL, 3)


def test_an_assignment() -> None:
    partition = ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 1])
    wire = bytes.fromhex("0001 00000001 0001 74 00000002 00000000 00000001 ffffffff")
    assert ConsumerProtocolAssignment(assigned_partitions=[partition]).versioned(1) == wire
    assert ConsumerProtocolAssignment.parse(wire)[0].assigned_partitions == [partition]


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_round_trip(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from([ConsumerProtocolSubscription, ConsumerProtocolAssignment]))
    version = data.draw(st.sampled_from(cls.versions))
    message = data.draw(messages(cls, version))
    assert cls.parse(message.versioned(version)) == (message, version)


@given(data=st.binary(max_size=30))
@settings(deadline=None)
def test_random_bytes(data: bytes) -> None:
    try:
        ConsumerProtocolSubscription.parse(data)
    except ProtocolError:
        pass
    else:
        assert len(data) >= 10


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0\0\0\0\1"])
def test_bytes_that_are_not_a_message(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        ConsumerProtocolSubscription.parse(data)
