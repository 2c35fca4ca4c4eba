"""Tests of groups while the clock is moved forward: sessions of members, rebalance delays, and expired offsets."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import confluent_kafka
import pytest

import hmb
from hmb.protocol.topics import TopicPartition
from hmb.testing.clock import ManualClock
from tests.waiting import until

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Iterator[hmb.Broker]:
    with hmb.Broker(clock=clock) as broker:
        broker.create_topic("t", partitions=2)
        broker.produce("t", "a")
        broker.produce("t", "b", partition=1)
        yield broker


def members(broker: hmb.Broker) -> dict[str, str]:
    """Return the client ids of the members of group g, by member id."""
    with hmb.Admin(broker.bootstrap_servers) as admin:
        found = admin.describe_groups(["g"])["g"]
    return {} if isinstance(found, Exception) else {each.member_id: each.client_id for each in found.members}


def leave_a_static_member(broker: hmb.Broker) -> None:
    """Create a static member that commits offsets of both partitions, and close it.

    The group still contains the member.
    """
    with hmb.Consumer(
        broker.bootstrap_servers, "t", group="g", group_instance_id="static", client_id="static"
    ) as consumer:
        until(lambda: consumer.poll(timeout=1))
        consumer.commit({FIRST: 1, SECOND: 1})


def test_a_member_that_stopped_expires_with_its_session(broker: hmb.Broker, clock: ManualClock) -> None:
    leave_a_static_member(broker)
    clock.advance(hours=1)
    assert list(members(broker).values()) == ["static"]  # Without expire_members, sessions use the real time.
    clock.advance(seconds=30, expire_members=True)
    # The member is still in the group after 30 s, because the session timeout is 45 s.
    assert list(members(broker).values()) == ["static"]
    clock.advance(seconds=16, expire_members=True)
    assert members(broker) == {}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_member_keeps_its_session_while_a_day_passes(
    broker: hmb.Broker, clock: ManualClock, protocol: str
) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe(["t"])
        assert [each.error() for each in consumer.consume(2, timeout=30)] == [None, None]
        before = members(broker)
        clock.advance(days=1)
        assert members(broker) == before
        consumer.commit(asynchronous=False)
        broker.produce("t", "c")
        assert [each.value() for each in consumer.consume(1, timeout=30)] == [b"c"]
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_expired_live_member_joins_again(broker: hmb.Broker, clock: ManualClock, protocol: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms" if protocol == "classic" else "client.id": "100",
        }
    )
    lost: list[object] = []
    try:
        consumer.subscribe(["t"], on_lost=lambda _, partitions: lost.append(partitions))
        assert len(consumer.consume(2, timeout=30)) == 2
        consumer.commit(asynchronous=False)
        clock.advance(minutes=10, expire_members=True)
        until(lambda: (consumer.poll(0.1), lost)[1])
        until(lambda: (consumer.poll(0.1), members(broker))[1])
    finally:
        consumer.close()


def test_offsets_of_a_group_without_members_expire(broker: hmb.Broker, clock: ManualClock) -> None:
    with hmb.Consumer(broker.bootstrap_servers, "t", group="g") as consumer:
        until(lambda: consumer.poll(timeout=1))
        consumer.commit({FIRST: 1})
    clock.advance(days=6)
    assert broker.committed("g")[FIRST] == 1
    clock.advance(days=2)
    assert broker.committed("g") == {}


def test_members_and_then_their_offsets_expire_in_one_advance(broker: hmb.Broker, clock: ManualClock) -> None:
    leave_a_static_member(broker)
    clock.advance(days=8)
    assert broker.committed("g") == {FIRST: 1, SECOND: 1}  # The group still has its member.
    clock.advance(days=8, expire_members=True)
    assert broker.committed("g") == {}
    with hmb.Admin(broker.bootstrap_servers) as admin:
        assert admin.list_groups() == []


def test_the_offsets_of_members_that_expire_in_an_advance_expire_seven_days_later(
    broker: hmb.Broker, clock: ManualClock
) -> None:
    leave_a_static_member(broker)
    # The group is empty after 45 s, so its offsets expire 45 s after these seven days.
    clock.advance(days=7, expire_members=True)
    assert broker.committed("g") == {FIRST: 1, SECOND: 1}
    clock.advance(minutes=2)
    assert broker.committed("g") == {}


def test_the_initial_rebalance_delay_passes_with_the_members_time(clock: ManualClock) -> None:
    with hmb.Broker(config={"group.initial.rebalance.delay.ms": 120_000}, clock=clock) as broker:
        broker.produce("t", "a")
        values: list[bytes | None] = []

        def read() -> None:
            with hmb.Consumer(broker.bootstrap_servers, "t", group="g", request_timeout=60) as consumer:
                values.extend(record.value for record in consumer.poll(timeout=60))

        reader = threading.Thread(target=read)
        reader.start()
        until(lambda: members(broker))
        clock.advance(minutes=3)
        assert values == []
        clock.advance(seconds=121, expire_members=True)
        reader.join(60)
        assert values == [b"a"]
