"""Tests of the tasks that read ranges of offsets, and of the driver's plans for batch queries.

The tests require a broker, but no JVM.

The tests in test_triggers.py cover the offsets of streaming queries. The tests in test_source.py and test_trouble.py
start Spark, and run complete queries in it.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import hmb

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa

from hmb.client.connection import ConnectionFailed
from hmb.protocol.topics import TopicPartition
from hmb.spark import tasks
from hmb.spark.batch import BatchReader
from hmb.spark.options import SourceOptions, source_options
from hmb.spark.ranges import OffsetRange
from hmb.spark.tasks import DataLossError
from tests.spark.topics import create, delete, delete_before, fill, ranges
from tests.waiting import until

PARTITIONS = 1


def batch_of(servers: str, topic: str, **given: str) -> SourceOptions:
    return source_options({"kafka.bootstrap.servers": servers, "subscribe": topic, **given}, streaming=False)


def values(options: SourceOptions, topic: str, first: int, end: int) -> list[bytes | None]:
    return [
        value
        for batch in tasks.read(options, OffsetRange(TopicPartition(topic, 0), first, end))
        for value in batch.column("value").to_pylist()
    ]


# Tasks that read ranges


def test_columns(servers: str, topic: str) -> None:
    with hmb.Producer(servers) as producer:
        producer.send(topic, b"v", b"k", partition=0, timestamp=1_700_000_000_123, headers=[("a", b"1"), ("a", None)])
        producer.send(topic, None, None, partition=0, timestamp=1_700_000_000_124)
    options = batch_of(servers, topic, includeHeaders="true")
    (batch,) = tasks.read(options, OffsetRange(TopicPartition(topic, 0), 0, 2))
    first, second = batch.to_pylist()
    assert first["headers"] == [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert second["headers"] is None, "the connector says null where there are none"
    assert (first["key"], first["value"], second["key"], second["value"]) == (b"k", b"v", None, None)
    assert first["timestamp"].timestamp() == 1_700_000_000.123
    assert (first["topic"], first["partition"], first["offset"], first["timestampType"]) == (topic, 0, 0, 0)


@pytest.mark.parametrize("names", ["key,offset,timestamp", "value", "timestampType,partition", "headers,topic"])
def test_the_option_columns(servers: str, topic: str, names: str) -> None:
    """With the option `columns`, the selected columns have the same values and types as in a query of all columns."""
    with hmb.Producer(servers) as producer:
        for number in range(3):
            producer.send(topic, b"v%d" % number, b"k", partition=0, headers=[("a", b"1")] * number)
    wanted = OffsetRange(TopicPartition(topic, 0), 1, 3)
    (everything,) = tasks.read(batch_of(servers, topic, includeHeaders="true"), wanted)
    (some,) = tasks.read(batch_of(servers, topic, columns=names), wanted)
    assert some.schema.names == names.split(",")
    assert some == everything.select(names.split(","))


def test_a_range_is_read_and_nothing_else(servers: str, topic: str) -> None:
    fill(servers, topic, [b"%d" % number for number in range(100)])
    assert values(batch_of(servers, topic), topic, 17, 42) == [b"%d" % number for number in range(17, 42)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed(servers: str, topic: str, codec: str) -> None:
    wanted: list[bytes | None] = [b"%d" % number * 100 for number in range(100)]
    fill(servers, topic, wanted, compression=codec)
    assert values(batch_of(servers, topic), topic, 0, 100) == wanted


def test_ten_megabytes(servers: str) -> None:
    create(servers, "large", **{"max.message.bytes": "20000000"})
    wanted: list[bytes | None] = [bytes([number]) * 10_000_000 for number in range(3)]
    fill(servers, "large", wanted, max_request_size=20_000_000)
    assert values(batch_of(servers, "large"), "large", 0, 3) == wanted


def test_read_committed(servers: str, topic: str) -> None:
    with hmb.Producer(servers, transactional_id="x") as producer:
        producer.init_transactions()
        for ends in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            # Wait for the record: without a record, the broker has no transaction to abort.
            producer.send(topic, ends.__name__.encode(), partition=0).result()
            ends()
    options = batch_of(servers, topic, **{"kafka.isolation.level": "read_committed"})
    # The broker may write the last marker shortly after commit_transaction has returned.
    until(lambda: ranges(BatchReader(options).partitions()) == [f"{topic}-0 [0, 6)"])
    assert values(options, topic, 0, 6) == [b"commit_transaction"] * 2


@pytest.mark.parametrize("fails", [True, False])
def test_records_deleted_before_a_task_runs(
    servers: str, topic: str, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fill(servers, topic, [b"%d" % number for number in range(10)])
    delete_before(servers, topic, 4)
    options = batch_of(servers, topic, failOnDataLoss=str(fails))
    message = f"cannot read all of {topic}-0 [0, 8): the log starts at 4"
    if fails:
        with pytest.raises(DataLossError, match="set the option failOnDataLoss=false") as caught:
            values(options, topic, 0, 8)
        assert message in str(caught.value)
    else:
        assert values(options, topic, 0, 8) == [b"4", b"5", b"6", b"7"]
        assert message in caplog.text


@pytest.mark.parametrize("fails", [True, False])
def test_records_deleted_while_a_task_reads(servers: str, topic: str, fails: bool) -> None:
    """Records are deleted while a task reads.

    With failOnDataLoss=false, the task also returns the records after the deleted ones.
    """
    fill(servers, topic, [b"%d" % number + bytes(1000) for number in range(60)], batch_size=1500)
    small = {"kafka.max.partition.fetch.bytes": "3000"}
    options = batch_of(servers, topic, failOnDataLoss=str(fails), **small)
    reading = tasks.read(options, OffsetRange(TopicPartition(topic, 0), 0, 60))
    first = next(reading).column("offset").to_pylist()
    delete_before(servers, topic, 50)
    if fails:
        with pytest.raises(DataLossError, match=rf"{topic}-0 \[\d+, 60\)"):
            list(reading)
    else:
        rest = [offset for batch in reading for offset in batch.column("offset").to_pylist()]
        assert first[0] == 0 and rest[-10:] == list(range(50, 60))
        assert len(first + rest) < 60, "some were deleted"


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_deleted_before_a_task_runs(servers: str, topic: str, fails: bool) -> None:
    options = batch_of(servers, topic, failOnDataLoss=str(fails))
    delete(servers, topic)
    if fails:
        with pytest.raises(DataLossError, match=rf"cannot read {topic}-0 \[0, 5\): there is no topic"):
            values(options, topic, 0, 5)
    else:
        assert values(options, topic, 0, 5) == []


def test_a_topic_deleted_while_a_task_reads(servers: str, topic: str) -> None:
    """A topic is deleted while a task reads it.

    The task returns the records that it has fetched before. Then it logs the loss and ends.
    """
    fill(servers, topic, [b"%d" % number + bytes(1000) for number in range(60)], batch_size=1500)
    small = {"kafka.max.partition.fetch.bytes": "3000"}
    options = batch_of(servers, topic, failOnDataLoss="false", **small)
    reading = tasks.read(options, OffsetRange(TopicPartition(topic, 0), 0, 60))
    first = next(reading)
    delete(servers, topic)
    rest = list(reading)
    assert 0 < first.num_rows + sum(batch.num_rows for batch in rest) < 60


def test_a_missing_timestamp_becomes_minus_one(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"])
    (batch,) = tasks.read(batch_of(servers, topic), OffsetRange(TopicPartition(topic, 0), 0, 1))
    assert batch.column("timestamp").null_count == 0
    no_time = pa.array([None, 5], pa.timestamp("ms", "UTC"))
    assert tasks._timestamps(no_time).cast(pa.int64()).to_pylist() == [-1, 5]


@pytest.mark.parametrize("fails", [True, False])
def test_a_log_that_ends_too_early(servers: str, topic: str, fails: bool) -> None:
    """A log ends before the end of a task's range. The task does not wait for the missing offsets."""
    fill(servers, topic, [b"0", b"1", b"2"])
    options = batch_of(servers, topic, failOnDataLoss=str(fails))
    if fails:
        with pytest.raises(DataLossError, match="the log ends at 3"):
            values(options, topic, 1, 9)
    else:
        assert values(options, topic, 1, 9) == [b"1", b"2"]
        assert values(options, topic, 5, 9) == []


def starting_later(broker: hmb.Broker) -> threading.Timer:
    """Start a broker after half a second. A client already waits for it."""
    timer = threading.Timer(0.5, broker.start)
    timer.start()
    return timer


def test_a_task_waits_for_a_broker_that_restarts(tmp_path: Path) -> None:
    broker = hmb.Broker(tmp_path).start()
    servers = broker.bootstrap_servers
    fill(servers, "t", [b"1", b"2"])
    broker.stop()
    again = hmb.Broker(tmp_path, port=int(servers.rpartition(":")[2]))
    timer = starting_later(again)
    try:
        assert values(batch_of(servers, "t"), "t", 0, 2) == [b"1", b"2"]
    finally:
        timer.join()
        again.stop()


def test_a_broker_that_restarts_while_a_task_reads(tmp_path: Path) -> None:
    broker = hmb.Broker(tmp_path).start()
    servers = broker.bootstrap_servers
    fill(servers, "t", [b"%d" % number + bytes(1000) for number in range(60)], batch_size=1500)
    options = batch_of(servers, "t", **{"kafka.max.partition.fetch.bytes": "3000"})
    reading = tasks.read(options, OffsetRange(TopicPartition("t", 0), 0, 60))
    found = next(reading).column("offset").to_pylist()
    broker.stop()
    again = hmb.Broker(tmp_path, port=int(servers.rpartition(":")[2]))
    timer = starting_later(again)
    try:
        found += [offset for batch in reading for offset in batch.column("offset").to_pylist()]
    finally:
        timer.join()
        again.stop()
    assert found == list(range(60))


def test_a_broker_that_dies_while_a_task_reads(tmp_path: Path) -> None:
    """A broker dies while a task reads.

    The task fails when its time for retries is over. It must not end as if it had read the whole range.
    """
    broker = hmb.Broker(tmp_path).start()
    servers = broker.bootstrap_servers
    fill(servers, "t", [b"%d" % number + bytes(1000) for number in range(60)], batch_size=1500)
    few = {"kafka.max.partition.fetch.bytes": "3000", "kafka.default.api.timeout.ms": "500"}
    options = batch_of(servers, "t", **few)
    reading = tasks.read(options, OffsetRange(TopicPartition("t", 0), 0, 60))
    next(reading)
    broker.stop()
    with pytest.raises(ConnectionFailed, match=servers):
        list(reading)
    with pytest.raises(ConnectionFailed, match=servers):
        values(options, "t", 0, 60)


# Batch queries


def test_starting_and_ending(servers: str, topic: str) -> None:
    with hmb.Producer(servers) as producer:
        for number in range(10):
            producer.send(topic, b"v", partition=0, timestamp=1000 + number)

    def planned(**given: str) -> list[str]:
        return ranges(BatchReader(batch_of(servers, topic, **given)).partitions())

    def offsets(number: int) -> str:
        return f'{{"{topic}": {{"0": {number}}}}}'

    assert planned() == [f"{topic}-0 [0, 10)"]
    assert planned(startingOffsets=offsets(3), endingOffsets=offsets(7)) == [f"{topic}-0 [3, 7)"]
    assert planned(startingOffsets=offsets(-2), endingOffsets=offsets(-1)) == [f"{topic}-0 [0, 10)"]
    assert planned(startingTimestamp="1004", endingTimestamp="1006") == [f"{topic}-0 [4, 6)"]
    assert planned(startingOffsetsByTimestamp=offsets(1004), endingTimestamp="9999") == [f"{topic}-0 [4, 10)"]
    assert planned(startingTimestamp="9999", startingOffsetsByTimestampStrategy="latest") == []
    assert planned(minPartitions="2") == [f"{topic}-0 [0, 5)", f"{topic}-0 [5, 10)"]
    with pytest.raises(ValueError, match=r"option 'startingTimestamp': .* has no record at or after the time 9999"):
        planned(startingTimestamp="9999")
    with pytest.raises(ValueError, match=r"option 'startingOffsetsByTimestamp': .* has no record at or after"):
        planned(startingOffsetsByTimestamp=offsets(9999))
    with pytest.raises(ValueError, match="must specify all partitions that are read: missing"):
        planned(startingOffsets='{"other": {"0": 1}}')
    with pytest.raises(DataLossError, match=f"cannot read {topic}-0 from offset 11: the log ends at 10"):
        planned(startingOffsets=offsets(11))


def test_a_pattern_is_searched_for_anywhere_in_the_name(servers: str) -> None:
    """A pattern matches if it occurs anywhere in a topic's name.

    The pattern `^...$` matches the whole name, as in Spark's Kafka connector.
    """
    for name in ("weather-north", "weather-south", "north"):
        create(servers, name)
        fill(servers, name, [b"v"])

    def planned(pattern: str) -> list[str]:
        given = {"kafka.bootstrap.servers": servers, "subscribePattern": pattern}
        return ranges(BatchReader(source_options(given, streaming=False)).partitions())

    assert planned("eather-") == ["weather-north-0 [0, 1)", "weather-south-0 [0, 1)"]
    assert planned("^north$") == ["north-0 [0, 1)"]
    assert planned("__consumer") == []
