"""Tests of the state of a broker: what `Broker.state()` returns while real clients use the broker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import hmb
from hmb.monitoring import collecting, state_cache
from hmb.monitoring.collecting import collect
from hmb.monitoring.metrics import StateCollector, metrics_text
from hmb.monitoring.state import ApiInfo, BrokerState, GroupInfo, PartitionInfo, as_json
from hmb.monitoring.state_cache import StateCache
from hmb.storage.log import Log
from tests.waiting import until

QUICK = {"log.flush.acks.all": "false", "group.initial.rebalance.delay.ms": "0"}


def send(broker: hmb.Broker, topic: str, count: int, size: int = 100) -> None:
    with hmb.Producer(broker.bootstrap_servers) as producer:
        for _ in range(count):
            producer.send(topic, b"x" * size, partition=0)


def partition_of(state: BrokerState, topic: str) -> PartitionInfo:
    return next(each for each in state.topics if each.name == topic).partitions[0]


def api_of(state: BrokerState, name: str) -> ApiInfo:
    return next(each for each in state.requests if each.api == name)


def group_of(state: BrokerState, name: str) -> GroupInfo:
    return next(each for each in state.groups if each.group_id == name)


def test_a_partition_shows_its_offsets_segments_and_producers() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t", config={"segment.bytes": 4096, "index.interval.bytes": 200})
        for _ in range(4):
            send(broker, "t", 10, size=200)
        partition = partition_of(broker.state(), "t")
        assert (partition.log_start_offset, partition.high_watermark, partition.log_end_offset) == (0, 40, 40)
        assert [segment.base_offset for segment in partition.segments] == [0, 10, 20, 30]
        assert [segment.is_active for segment in partition.segments] == [False, False, False, True]
        assert sum(segment.bytes for segment in partition.segments) == partition.bytes > 40 * 200
        assert all(segment.first_timestamp == segment.max_timestamp for segment in partition.segments)
        assert [each.last_sequence for each in partition.producers] == [9, 9, 9, 9]
        assert partition.error is None


def test_an_open_transaction_shows_where_it_begins() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 3)
        with hmb.Producer(broker.bootstrap_servers, transactional_id="pay") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"a").result()
            state = broker.state()
            partition = partition_of(state, "t")
            assert (partition.last_stable_offset, partition.high_watermark) == (3, 4)
            assert [each.transaction_start for each in partition.producers if each.transaction_start] == [3]
            (found,) = state.transactions
            assert (found.transactional_id, found.state, found.partitions) == ("pay", "Ongoing", ["t-0"])
            producer.commit_transaction()
        # three records, the record of the transaction, and the marker
        assert partition_of(broker.state(), "t").last_stable_offset == 5


@pytest.mark.parametrize("fresh", [3600.0, 0.0])
def test_a_cache_keeps_a_partition_until_its_offsets_change(monkeypatch: pytest.MonkeyPatch, fresh: float) -> None:
    monkeypatch.setattr(state_cache, "FRESH", fresh)
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t", 2)
        server, cache = broker._running, StateCache()

        def partitions() -> list[PartitionInfo]:
            return next(each for each in collect(server, cache=cache).topics if each.name == "t").partitions

        before, again = partitions(), partitions()
        assert before == again
        assert [a is b for a, b in zip(before, again, strict=True)] == [fresh > 0] * 2
        send(broker, "t", 10)
        after = partitions()
        assert [each.high_watermark for each in after] == [10, 0]
        assert (after[0] is before[0], after[1] is before[1]) == (False, fresh > 0)


@pytest.mark.parametrize("fresh", [3600.0, 0.0])
def test_a_cache_keeps_the_timestamps_of_lagging_groups(monkeypatch: pytest.MonkeyPatch, fresh: float) -> None:
    """The cache keeps the timestamp of a group's first unread batch for `fresh` seconds.

    The test computes the broker's state twice. In between, new records arrive, but the first unread batch stays the
    same. If `fresh` is 3600, the broker reads the timestamp only for the first state. If `fresh` is 0, the broker reads
    it for both states.
    """
    monkeypatch.setattr(state_cache, "FRESH_TIMESTAMPS", fresh)
    read: list[int] = []

    def timestamp_from(log: Log, offset: int) -> int | None:
        read.append(offset)
        return original(log, offset)

    original = collecting._timestamp_from
    monkeypatch.setattr(collecting, "_timestamp_from", timestamp_from)
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 10)
        with hmb.Consumer(broker.bootstrap_servers, group="g") as consumer:
            consumer.assign([hmb.TopicPartition("t", 0)])
            consumer.commit({hmb.TopicPartition("t", 0): 3})
        server, cache = broker._running, StateCache()
        lags = []
        for _ in range(2):
            (group,) = collect(server, cache=cache).groups
            lags.append(group.positions[0].lag)
            send(broker, "t", 5)
        assert (lags, read) == ([7, 12], [3] if fresh else [3, 3])


def test_a_group_shows_its_members_and_its_lag() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 10)
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g", client_id="reader") as consumer:
            for record in consumer:
                if record.offset == 5:
                    break
            consumer.commit()
            group = group_of(broker.state(), "g")
            assert (group.type, group.state) == ("classic", "Stable")
            assert [(each.client_id, each.partitions) for each in group.members] == [("reader", ["t-0"])]
            (position,) = group.positions
            assert (position.topic, position.committed_offset, position.lag) == ("t", 6, 4)
            assert position.lag_ms is not None and 0 <= position.lag_ms < 60_000
        assert group_of(broker.state(), "g").state == "Empty"


def test_the_lag_counts_as_no_read_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """To find the age of a group's first unread batch, the broker does not use the method for clients, `Log.read`.

    `Log.read` counts how often clients read the same offset, because repeated reads can be a sign of damage. If the
    broker used this method itself, the counts would be wrong.
    """
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 10)
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g") as consumer:
            next(iter(consumer))
            consumer.commit()
        monkeypatch.setattr(Log, "read", Mock(side_effect=AssertionError("the state reads like a client")))
        (position,) = group_of(broker.state(), "g").positions
        assert (position.lag, position.lag_ms is not None) == (9, True)


def test_a_group_of_the_new_protocol_shows_its_members() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 1)
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g", group_protocol="consumer") as consumer:
            next(iter(consumer))
            group = group_of(broker.state(), "g")
            assert (group.type, [each.partitions for each in group.members]) == ("consumer", [["t-0"]])


def test_requests_are_counted_with_their_errors_and_bytes() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 10)
        produce = api_of(broker.state(), "Produce")
        assert (produce.errors, produce.record_bytes > 1000, produce.p99_ms > 0) == (0, True, True)
        broker.faults.add("FETCH", error="KAFKA_STORAGE_ERROR", times=1)
        with hmb.Consumer(broker.bootstrap_servers, "t", until="end") as consumer:
            assert len(list(consumer)) == 10
        fetch = api_of(broker.state(), "Fetch")
        assert (fetch.count, fetch.errors, fetch.record_bytes) == (2, 1, produce.record_bytes)


def test_a_connection_shows_its_client() -> None:
    with hmb.Broker(config=QUICK) as broker, hmb.Admin(broker.bootstrap_servers, client_id="me") as admin:
        admin.list_topics()
        (connection,) = (each for each in broker.state().connections if each.client_id == "me")
        assert connection.last_api == "Metadata" and connection.requests >= 2


def test_events_name_what_happened() -> None:
    with hmb.Broker(config=QUICK) as broker:
        config = {"segment.bytes": 4096, "retention.bytes": 4096, "file.delete.delay.ms": 0}
        broker.create_topic("t", config=config)
        for _ in range(3):
            send(broker, "t", 10, size=200)
        broker.run_retention()
        events = [(each.kind, each.text) for each in broker.state().events]
        assert ("topic", "created topic t, partitions: 1") in events
        assert ("roll", "t-0: a new segment begins at offset 10") in events
        assert ("retention", "t-0: deleted the records at offsets 0 to 9 (segments: 1)") in events


def test_a_deleted_topic_has_no_lag() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 2)
        state = broker.state()
        lost = replace(state, topics=[])
        assert b"kafka_topic_partitions{" not in metrics_text(lambda: lost)


def test_the_state_is_json() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t")
        send(broker, "t", 1)
        state = broker.state()
        decoded = json.loads(json.dumps(as_json(state)))
        assert decoded["topics"][0]["partitions"][0]["log_end_offset"] == 1
        assert decoded["process"]["threads"] == state.process.threads > 1


def test_metrics_have_the_text_format_of_prometheus_client() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t", partitions=2)
        send(broker, "t", 7)
        with hmb.Consumer(broker.bootstrap_servers, "t", group='a "quoted"\\ group\n') as consumer:
            next(iter(consumer))
            consumer.commit()
        state = broker.state()
    state = replace(state, started=10**16)  # A number this large is printed with an exponent.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(lambda: state))
    assert metrics_text(lambda: state).decode().splitlines() == generate_latest(registry).decode().splitlines()


def test_metrics_have_the_names_of_the_exporters() -> None:
    with hmb.Broker(config=QUICK) as broker:
        broker.create_topic("t", partitions=2)
        send(broker, "t", 7)
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g") as consumer:
            next(iter(consumer))
            consumer.commit()
        state = broker.state()
        lines = metrics_text(lambda: state).decode().splitlines()
        assert 'kafka_topic_partition_current_offset{partition="0",topic="t"} 7.0' in lines
        assert 'kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"} 6.0' in lines
        assert 'kafka_consumergroup_lag_sum{consumergroup="g",topic="t"} 6.0' in lines
        assert 'kafka_server_brokertopicmetrics_messagesin_total{topic="t"} 7.0' in lines
        assert any(line.startswith('kafka_network_requestmetrics_requests_total{request="Produce"}') for line in lines)
        assert "kafka_controller_kafkacontroller_activecontrollercount 1.0" in lines


def test_a_connection_has_the_codec_and_the_producer_of_its_last_batch() -> None:
    with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers, client_id="me", compression="gzip") as producer:
        producer.send("t", b"x").result()
        found = {(it.codec, it.producer_id, it.software) for it in broker.state().connections if it.client_id == "me"}
        (named,) = {each for each in found if each[0] is not None}
        assert named == ("gzip", 0, f"hmb {hmb.__version__}")
        with hmb.Admin(broker.bootstrap_servers, client_id="other") as admin:
            admin.list_topics()
            others = broker.state().connections
            assert any(it.codec is None and it.producer_id is None for it in others if it.client_id != "me")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_has_a_last_heartbeat_and_a_rebalance_has_a_cause(protocol: Any) -> None:
    with hmb.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        broker.create_topic("t")
        broker.produce("t", b"x")
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g", group_protocol=protocol) as consumer:
            while not consumer.poll(1):
                pass
            state = broker.state()
            (member,) = group_of(state, "g").members
            assert member.last_heartbeat is not None and 0 <= state.time - member.last_heartbeat < 60_000
            assert member.last_heartbeat % 1000 == 0
        texts = [event.text for event in broker.state().events if event.kind == "group"]
        assert any(", because the new member " in text and " joins" in text for text in texts), texts


def test_a_share_group_has_positions_and_members() -> None:
    with hmb.Broker() as broker:
        broker.create_topic("t")
        with hmb.ShareConsumer(broker.bootstrap_servers, "t", group="queue") as consumer:
            assert all(not group.positions for group in broker.state().groups)
            until(lambda: consumer.poll(0.1) or any(it.positions for it in broker.state().groups), "a position")
            group = group_of(broker.state(), "queue")
            assert group.type == "share" and group.members[0].partitions == ["t-0"]
            assert group.members[0].last_heartbeat is not None
            (position,) = group.positions
            assert (position.topic, position.committed_offset, position.lag) == ("t", 0, 0)
            broker.produce("t", b"a", b"b")
            (position,) = group_of(broker.state(), "queue").positions
            assert position.lag == 2
