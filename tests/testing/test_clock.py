"""Tests of the broker's clock, which a test moves forward: expired records, compaction, timestamps, wrong arguments."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

import hmb
from hmb.protocol.topics import TopicPartition
from hmb.testing.clock import ManualClock
from hmb.units import now_ms

HOUR = 3_600_000  # ms


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Iterator[hmb.Broker]:
    with hmb.Broker(clock=clock) as broker:
        yield broker


def values(broker: hmb.Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_records_expire_when_the_clock_has_moved_past_their_retention(broker: hmb.Broker, clock: ManualClock) -> None:
    broker.create_topic("t", config={"retention.ms": timedelta(hours=1)})
    broker.produce("t", "a", "b")
    clock.advance(minutes=59)
    assert values(broker, "t") == [b"a", b"b"]
    clock.advance(minutes=2)
    assert values(broker, "t") == []
    assert broker.produce("t", "c") == 2
    assert values(broker, "t") == [b"c"]


def test_a_consumer_sees_that_records_have_expired(broker: hmb.Broker, clock: ManualClock) -> None:
    broker.create_topic("t", config={"retention.ms": timedelta(hours=1), "message.timestamp.type": "LogAppendTime"})
    with hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"old").result()
        clock.advance(hours=2)
        producer.send("t", b"new").result()
    with hmb.Consumer(broker.bootstrap_servers, "t") as consumer:
        records = consumer.poll(timeout=30)
    assert [(record.offset, record.value) for record in records] == [(1, b"new")]
    assert abs(records[0].timestamp - clock.now_ms()) < HOUR


def test_log_append_time_is_the_time_of_the_clock(broker: hmb.Broker, clock: ManualClock) -> None:
    broker.create_topic("t", config={"message.timestamp.type": "LogAppendTime", "retention.ms": -1})
    with hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"a").result()
        clock.advance(days=3)
        producer.send("t", b"b").result()
    first, second = (record.timestamp for record in broker.records("t"))
    assert 72 * HOUR <= second - first < 73 * HOUR


def test_deleted_files_are_removed_in_the_same_advance(broker: hmb.Broker, clock: ManualClock) -> None:
    broker.create_topic("t", config={"retention.ms": timedelta(hours=1), "file.delete.delay.ms": timedelta(minutes=1)})
    broker.produce("t", "a")
    directory = broker.data_dir / "t-0"
    clock.advance(hours=3)
    assert [path.name for path in directory.glob("*.log*")] == [f"{1:020}.log"]


def test_a_round_of_retention_states_what_it_deleted(broker: hmb.Broker) -> None:
    broker.create_topic("t", partitions=2, config={"retention.ms": timedelta(hours=1)})
    broker.produce("t", "a", "b", "c", partition=1, timestamp=1000)
    broker.produce("t", "d")
    assert broker.run_retention() == {TopicPartition("t", 1): 3}
    assert broker.run_retention() == {}
    assert values(broker, "t") == [b"d"]


def test_a_round_of_compaction_keeps_the_newest_value_of_each_key(broker: hmb.Broker) -> None:
    broker.create_topic("t", config={"cleanup.policy": "compact"})
    for number in range(3):
        broker.produce("t", f"a{number}", key="a")
        broker.produce("t", f"b{number}", key="b")
    removed = broker.compact()
    assert list(removed) == [TopicPartition("t", 0)]
    assert removed[TopicPartition("t", 0)] > 0
    assert values(broker, "t") == [b"a2", b"b2"]
    assert broker.compact() == {}
    broker.produce("t", "b3", key="b")
    assert broker.compact()
    assert values(broker, "t") == [b"a2", b"b3"]


def test_a_tombstone_is_dropped_after_its_retention(broker: hmb.Broker, clock: ManualClock) -> None:
    config = {"cleanup.policy": "compact", "delete.retention.ms": timedelta(hours=24)}
    broker.create_topic("t", config=config)
    broker.produce("t", "a", key="a")
    broker.produce("t", None, key="a")
    broker.produce("t", "b", key="b")
    broker.compact()
    assert values(broker, "t") == [None, b"b"]
    clock.advance(hours=23)
    broker.compact()
    assert values(broker, "t") == [None, b"b"]
    clock.advance(hours=2)
    broker.compact()
    assert values(broker, "t") == [b"b"]


def test_records_younger_than_the_compaction_lag_stay(broker: hmb.Broker, clock: ManualClock) -> None:
    broker.create_topic("t", config={"cleanup.policy": "compact", "min.compaction.lag.ms": timedelta(hours=1)})
    for value in "abc":
        broker.produce("t", value, key="k")
    assert broker.compact() == {}
    clock.advance(hours=2)
    assert broker.compact()
    assert values(broker, "t") == [b"c"]


def test_a_log_that_is_dirty_enough_is_compacted_while_the_clock_moves(broker: hmb.Broker, clock: ManualClock) -> None:
    config = {"cleanup.policy": "compact", "segment.bytes": 1000, "min.compaction.lag.ms": timedelta(hours=1)}
    broker.create_topic("t", config=config)
    for number in range(10):
        broker.produce("t", f"{number}" * 500, key="k")
    clock.advance(minutes=30)
    assert len(values(broker, "t")) == 10
    clock.advance(minutes=31)
    assert len(values(broker, "t")) < 4


def test_the_time_stays_moved_after_a_restart(broker: hmb.Broker, clock: ManualClock) -> None:
    broker.create_topic("t", config={"retention.ms": timedelta(hours=1)})
    broker.produce("t", "a")
    broker.kill()
    clock.advance(hours=2)
    broker.start()
    assert broker.run_retention() == {TopicPartition("t", 0): 1}
    broker.produce("t", "b")
    clock.advance(hours=2)  # After the restart, `advance` still runs the broker's periodic tasks, such as retention.
    assert values(broker, "t") == []


@pytest.mark.parametrize("by", [{}, {"hours": -1}, {"milliseconds": 0.5}, {"hours": 1, "minutes": -60}], ids=str)
def test_a_clock_does_not_stand_still_or_move_back(clock: ManualClock, by: dict[str, float]) -> None:
    before = clock.now_ms()
    with pytest.raises(ValueError, match="a clock only moves forward, by at least 1 ms; it cannot advance by"):
        clock.advance(**by)  # type: ignore[arg-type]
    assert 0 <= clock.now_ms() - before < HOUR


def test_a_timedelta_and_the_units_are_added(clock: ManualClock) -> None:
    before = clock.now_ms()
    clock.advance(timedelta(hours=1), hours=1, minutes=1, seconds=60, milliseconds=5)
    assert 2 * HOUR + 120_005 <= clock.now_ms() - before < 3 * HOUR


def test_a_broker_without_a_manual_clock_calls_the_function_of_the_system_directly() -> None:
    with hmb.Broker() as broker:
        broker.create_topic("t")
        assert broker._context.topics.log_of(TopicPartition("t", 0)).clock is now_ms


def test_two_brokers_share_one_clock(clock: ManualClock) -> None:
    with hmb.Broker(clock=clock) as first, hmb.Broker(clock=clock) as second:
        for broker in (first, second):
            broker.create_topic("t", config={"retention.ms": timedelta(hours=1)})
            broker.produce("t", "a")
        clock.advance(hours=2)
        assert values(first, "t") == values(second, "t") == []


def test_an_advance_of_ten_years_runs_each_task_a_bounded_number_of_times(
    broker: hmb.Broker, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    housekeeper = broker._server.housekeepers[0]
    monkeypatch.setattr(housekeeper, "run", runs.append)
    clock.advance(days=3650)
    assert len(runs) <= 400 * len(housekeeper.tasks)
