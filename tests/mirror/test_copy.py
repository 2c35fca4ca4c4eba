"""A copy has the records, the partitions, the settings and the group offsets of its source."""

from __future__ import annotations

import pytest

import hmb
from hmb.client.admin import ConfigResource, ResourceType
from hmb.mirror.errors import MirrorError
from hmb.protocol.topics import TopicPartition
from tests.mirror.conftest import MakeMirror, contents


def produce(broker: hmb.Broker, topic: str, count: int, first: int = 0, **settings: object) -> None:
    with hmb.Producer(broker.bootstrap_servers, **settings) as producer:  # type: ignore[arg-type]
        for number in range(first, first + count):
            key = None if number % 7 == 0 else b"key %d" % number
            value = None if number % 11 == 0 and key else b"value %d" % number
            headers = [("number", b"%d" % number), ("null", None)] if number % 3 == 0 else []
            producer.send(topic, key=key, value=value, headers=headers, timestamp=1_700_000_000_000 + number)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("transactional", [False, True])
def test_a_copy_has_all_records(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, codec: str, transactional: bool
) -> None:
    source.create_topic("orders", partitions=3)
    produce(source, "orders", 200, compression=codec)
    run = mirror(is_transactional=transactional)
    run.run()
    assert contents(target, "orders") == contents(source, "orders")
    assert len(contents(target, "orders")) == 200
    assert sum(it.records for it in run.partitions.values()) == 200
    assert {it.keeps_offsets for it in run.partitions.values()} == {not transactional}
    assert all(it.lag == 0 for it in run.partitions.values())


def test_a_second_run_copies_only_new_records(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders", partitions=2)
    for first in (0, 50):
        produce(source, "orders", 50, first)
        again = mirror()
        again.run()
        assert sum(it.records for it in again.partitions.values()) == 50
    assert contents(target, "orders") == contents(source, "orders")
    assert all(it.keeps_offsets for it in again.partitions.values())


def test_a_copy_has_the_settings_and_partitions_of_its_source(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    settings = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    source.create_topic("orders", partitions=4, config=settings | {"min.insync.replicas": "1"})
    mirror().run()
    orders = ConfigResource(ResourceType.TOPIC, "orders")
    with hmb.Admin(source.bootstrap_servers) as there, hmb.Admin(target.bootstrap_servers) as here:
        there.alter_configs(orders, set={"retention.ms": "5000000"})
        there.create_partitions({"orders": 6})
        mirror().run()
        entries = here.describe_configs([orders])[orders]
        assert not isinstance(entries, hmb.KafkaError)
        assert {name: entries[name].value for name in settings} == settings
        assert entries["retention.ms"].value == "5000000"
        assert entries["min.insync.replicas"].source.name == "DEFAULT_CONFIG"
        assert len(here.cluster.topic("orders").leaders) == 6


def test_only_chosen_topics_are_copied(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    for name in ("orders", "orders-old", "payments", "heartbeats"):
        source.create_topic(name)
    mirror("orders.*|heartbeats").run()
    with hmb.Admin(target.bootstrap_servers) as admin:
        assert [topic.name for topic in admin.list_topics()] == ["orders", "orders-old"]


def test_markers_and_aborted_records_are_left_out(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, said: list[str]
) -> None:
    source.create_topic("orders")
    with hmb.Producer(source.bootstrap_servers, transactional_id="shop") as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            producer.send("orders", value=b"%d" % number)
            producer.flush()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with hmb.Admin(source.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {TopicPartition("orders", 0): 4})  # the record of transaction 2
    mirror().run()
    assert [it.value for it in target.records("orders")] == [b"0", b"2", b"4"]
    assert target.committed("billing") == {TopicPartition("orders", 0): 1}
    assert said == ["orders-0: from offset 4 on, the copy has other offsets; they are translated"]


def test_a_copy_of_a_compacted_topic_has_no_gaps(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    often = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    source.create_topic("prices", config={"cleanup.policy": "compact"} | often)
    for number in range(40):
        source.produce("prices", str(number), key=f"k{number % 4}")
    source.compact()
    assert len(source.records("prices")) < 40
    mirror().run()
    assert contents(target, "prices") == contents(source, "prices")


def test_timestamps_that_the_source_has_set_are_kept(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders", config={"message.timestamp.type": "LogAppendTime"})
    produce(source, "orders", 20)
    mirror().run()
    assert contents(target, "orders") == contents(source, "orders")


def test_a_copy_begins_at_the_first_record_that_the_source_still_has(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders")
    source.produce("orders", *map(str, range(10)))
    partition = TopicPartition("orders", 0)
    with hmb.Admin(source.bootstrap_servers) as admin:
        admin.delete_records({partition: 4})
        admin.alter_group_offsets("billing", {partition: 7})
    run = mirror()
    run.run()
    assert [it.value for it in target.records("orders")] == [b"4", b"5", b"6", b"7", b"8", b"9"]
    assert not run.partitions[partition].keeps_offsets
    assert target.committed("billing") == {partition: 3}


def test_the_offset_of_a_group_never_goes_back(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders")
    source.produce("orders", *map(str, range(10)))
    partition = TopicPartition("orders", 0)
    with hmb.Admin(source.bootstrap_servers) as there, hmb.Admin(target.bootstrap_servers) as here:
        there.alter_group_offsets("billing", {partition: 5})
        mirror().run()
        assert target.committed("billing") == {partition: 5}
        here.alter_group_offsets("billing", {partition: 8})
        mirror().run()
    assert target.committed("billing") == {partition: 8}


def test_no_topic_matches(source: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders")
    with pytest.raises(MirrorError, match="no topic matches"):
        mirror("payments").run()
