"""Tests of `hmb.ShareConsumer`: both kinds of acknowledgement, several members, errors, and a dead-letter topic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hmb
from hmb.client.admin import ConfigResource, ResourceType
from hmb.client.share.acknowledgements import AcquiredOffsets, ranges
from hmb.protocol.enums import AcknowledgeType
from hmb.protocol.errors import ErrorCode
from tests.waiting import until

QUICK = {
    "log.flush.acks.all": "false",
    "group.share.assignment.interval.ms": "0",
    "group.share.record.lock.duration.ms": "1000",
}
ACCEPT, RELEASE = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE


@pytest.fixture(scope="module")
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker(config=QUICK) as broker:
        yield broker


@pytest.fixture
def servers(broker: hmb.Broker, request: pytest.FixtureRequest) -> str:
    """Create the topic "q" with ten records, and a group that starts to read at the oldest record."""
    with hmb.Admin(broker.bootstrap_servers) as admin:
        if "q" in {topic.name for topic in admin.list_topics()}:
            admin.delete_topics(["q"])
        admin.create_topics([hmb.NewTopic("q", 2)])
        group = ConfigResource(ResourceType.GROUP, request.node.name)
        admin.alter_configs(group, set={"share.auto.offset.reset": "earliest"})
    with hmb.Producer(broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("q", b"%d" % number, partition=number % 2)
    return broker.bootstrap_servers


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def take(consumer: hmb.ShareConsumer, count: int) -> list[hmb.ShareRecord]:
    records: list[hmb.ShareRecord] = []
    while len(records) < count:
        records += consumer.poll(5)
    return records


def lag(servers: str, group: str) -> int:
    with hmb.Admin(servers) as admin:
        return sum(each.lag or 0 for each in admin.list_share_offsets(group).values())


def has_begun(admin: hmb.Admin, group: str) -> bool:
    """Return whether the group has a start offset for each partition."""
    try:
        offsets = admin.list_share_offsets(group)
    except hmb.KafkaError:
        return False
    return bool(offsets) and all(offset.start_offset is not None for offset in offsets.values())


def test_the_next_poll_accepts_the_records(servers: str, group: str) -> None:
    with hmb.ShareConsumer(servers, "q", group=group) as consumer:
        records = take(consumer, 10)
        assert {record.value for record in records} == {b"%d" % number for number in range(10)}
        assert {record.delivery_count for record in records} == {1}
        assert consumer.poll(0.05) == []
    assert lag(servers, group) == 0


def test_a_released_record_comes_again_and_a_rejected_record_does_not(servers: str, group: str) -> None:
    with hmb.ShareConsumer(servers, "q", group=group, acknowledgement="explicit") as consumer:
        records = consumer.poll(5)
        with pytest.raises(ValueError, match="before the next poll"):
            consumer.poll()
        for record in records:
            consumer.acknowledge(record, "release" if record.offset == 0 else "reject")
        with pytest.raises(ValueError, match="acknowledged before"):
            consumer.acknowledge(records[0])
        again = [record for record in take(consumer, 1) if record.delivery_count > 1]
        assert {record.offset for record in again} == {0}
        for record in again:
            consumer.renew(record)
            consumer.acknowledge(record)
        assert consumer.commit() == {}


def test_four_members_share_two_partitions(servers: str, group: str) -> None:
    members = [hmb.ShareConsumer(servers, "q", group=group, max_poll_records=1) for _ in range(4)]
    found: list[bytes] = []

    def all_found() -> bool:
        for member in members:
            found.extend(record.value for record in member.poll(0.02))
        return len(found) >= 10

    until(all_found, "ten records")
    with hmb.Admin(servers) as admin:
        described = admin.describe_groups([group])[group]
        assert isinstance(described, hmb.client.admin.GroupDescription)
        assert (described.type, described.state, len(described.members)) == ("share", "Stable", 4)
    for member in members:
        member.close()
    assert sorted(found) == [b"%d" % number for number in range(10)]


def test_a_lock_that_times_out_is_an_error_of_the_commit(servers: str, group: str) -> None:
    slow = hmb.ShareConsumer(servers, "q", group=group)
    assert take(slow, 10)
    with hmb.ShareConsumer(servers, "q", group=group) as other:
        assert {record.delivery_count for record in take(other, 5)} == {2}
        assert {error.code for error in slow.commit().values()} == {ErrorCode.INVALID_RECORD_STATE}
    slow.close()


def test_what_fails_too_often_goes_to_a_dead_letter_topic(servers: str, group: str) -> None:
    """After a record has failed three times, the consumer moves it to another topic, as the documentation shows."""
    failures: list[bytes] = []
    with (
        hmb.ShareConsumer(servers, "q", group=group, acknowledgement="explicit") as consumer,
        hmb.Producer(servers) as producer,
    ):
        done = 0
        while done < 10:
            for record in consumer.poll(1):
                done += record.value != b"7" or record.delivery_count == 3
                if record.value != b"7":
                    consumer.acknowledge(record)
                elif record.delivery_count < 3:
                    failures.append(record.value)
                    consumer.acknowledge(record, "release")
                else:
                    producer.send("q-dead", record.value).result()
                    consumer.acknowledge(record, "reject")
            consumer.commit()
    assert failures == [b"7", b"7"]
    assert lag(servers, group) == 0
    with hmb.Consumer(servers, "q-dead", until="end") as dead:
        assert b"7" in [record.value for record in dead]


def test_a_consumer_survives_a_restart_of_the_broker(group: str) -> None:
    with hmb.Broker(config=QUICK) as broker, hmb.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([hmb.NewTopic("q", 1)])
        with hmb.ShareConsumer(broker.bootstrap_servers, "q", group=group) as consumer:
            until(lambda: consumer.poll(0.1) == [] and has_begun(admin, group), "the group reads the partition")
            broker.restart()
            with hmb.Producer(broker.bootstrap_servers) as producer:
                producer.send("q", b"after")
            assert [record.value for record in take(consumer, 1)] == [b"after"]


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="at least one topic"):
        hmb.ShareConsumer("127.0.0.1:1", group="g")
    with pytest.raises(ValueError, match="implicit"):
        hmb.ShareConsumer("127.0.0.1:1", "q", group="g", acknowledgement="no")  # type: ignore[arg-type]


def test_acknowledgements_become_ranges() -> None:
    assert ranges({7: ACCEPT, 5: ACCEPT, 6: ACCEPT, 9: RELEASE, 10: ACCEPT}) == [(5, 7, [1]), (9, 10, [2, 1])]
    offsets = AcquiredOffsets()
    offsets.waiting.update((1, 2))
    offsets.choose(2, RELEASE)
    offsets.choose_all(ACCEPT)
    assert offsets.take() == [(1, 2, [1, 2])]
    assert offsets.take() == []
