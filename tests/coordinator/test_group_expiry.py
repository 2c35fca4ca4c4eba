"""Tests of the expiry of committed offsets, which depends on the group's state and on its members' subscriptions."""

from __future__ import annotations

import pytest

from hmb.coordinator.group_expiry import expiry
from hmb.coordinator.offsets import CommittedOffset
from hmb.protocol.consumer_protocol import ConsumerProtocolSubscription
from tests.coordinator.classic.group_driver import GroupDriver

COMMITTED = CommittedOffset(5, -1, "", commit_timestamp=123)


def reads(*topics: str, version: int = 3) -> list[tuple[str, bytes]]:
    return [("range", ConsumerProtocolSubscription(topics=list(topics)).versioned(version))]


def test_offsets_of_a_group_without_members_ever_expire_after_their_commits() -> None:
    when = expiry(GroupDriver().group)
    assert when is not None
    assert (when.since(COMMITTED), when.is_read("t")) == (123, False)


@pytest.mark.parametrize("version", ConsumerProtocolSubscription.versions)
def test_offsets_of_a_stable_group_expire_if_no_member_subscribes_to_the_topic(version: int) -> None:
    driver = GroupDriver()
    driver.stable("a", protocols=reads("t", "u", version=version))
    when = expiry(driver.group)
    assert when is not None
    assert when.since(COMMITTED) == 123
    assert {topic: when.is_read(topic) for topic in "tuv"} == {"t": True, "u": True, "v": False}
    assert {topic: driver.group.reads(topic) for topic in "tv"} == {"t": True, "v": False}


def test_nothing_expires_while_a_group_rebalances() -> None:
    driver = GroupDriver()
    (member_id,) = driver.stable("a", protocols=reads("t"))
    driver.join("a", member_id, protocols=reads("u"))
    driver.join("b", version=3, protocols=reads("v"))
    assert expiry(driver.group) is None


def test_all_offsets_of_an_empty_group_expire_after_it_became_empty() -> None:
    driver = GroupDriver()
    (member_id,) = driver.stable("a", protocols=reads("t"))
    driver.now = 50_000
    driver.leave(member_id)
    for _ in range(2):
        when = expiry(driver.group)
        assert when is not None
        assert (when.since(COMMITTED), when.is_read("t"), driver.group.reads("t")) == (50_000, False, False)
        driver.now = 90_000
        driver.restart()
    driver.group.state.timestamp = -1  # Group records of versions 0 and 1 do not contain this time.
    when = expiry(driver.group)
    assert when is not None and when.since(COMMITTED) == 123


@pytest.mark.parametrize("metadata", [b"", b"\0\3", b"\0\0\0\0\0\5", b"\0\0\xff\xff\xff\xff"])
def test_nothing_expires_if_the_subscriptions_are_unknown(metadata: bytes) -> None:
    driver = GroupDriver()
    driver.stable("a", protocols=[("range", metadata)])
    assert expiry(driver.group) is None
    assert driver.group.reads("t")


def test_a_group_of_another_protocol_type_keeps_its_offsets() -> None:
    driver = GroupDriver()
    driver.stable("a", protocol_type="connect")
    assert expiry(driver.group) is None
    assert not driver.group.reads("t")
