"""Ranges as tasks read them, and triggers as the driver plans them; no JVM, but a broker.

What Spark itself makes of it is in test_source.py.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

import hmb

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from hmb.client.admin import NewTopic
from hmb.client.metadata import TopicPartition
from hmb.spark import tasks
from hmb.spark.batch import BatchReader, RangePartition
from hmb.spark.options import SourceOptions, source_options
from hmb.spark.ranges import OffsetRange
from hmb.spark.stream import StreamReader
from hmb.spark.tasks import DataLossError
from tests.waiting import until

numbers = count()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with hmb.Broker(config={"num.partitions": "1", "log.flush.acks.all": "false"}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = f"t{next(numbers)}"
    create(servers, name)
    return name


def create(servers: str, name: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.create_topics([name])


def delete(servers: str, name: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.delete_topics([name])


def delete_before(servers: str, topic: str, offset: int) -> None:
    with hmb.Admin(servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): offset})


def fill(servers: str, topic: str, values: list[bytes | None], **settings: Any) -> None:
    with hmb.Producer(servers, **settings) as producer:
        for value in values:
            producer.send(topic, value, partition=0)


def batch_of(servers: str, topic: str, **given: str) -> SourceOptions:
    return source_options({"kafka.bootstrap.servers": servers, "subscribe": topic, **given}, streaming=False)


def stream_of(servers: str, topic: str, **given: str) -> StreamReader:
    given = {"startingOffsets": "earliest", **given}
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, **given}
    return StreamReader(source_options(options, streaming=True))


def values(options: SourceOptions, topic: str, first: int, end: int) -> list[bytes | None]:
    return [
        value
        for batch in tasks.read(options, OffsetRange(TopicPartition(topic, 0), first, end))
        for value in batch.column("value").to_pylist()
    ]


def ranges(planned: Any) -> list[str]:
    return [str(each.wanted) for each in planned if isinstance(each, RangePartition)]


# -- tasks


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


def test_a_range_is_read_and_nothing_else(servers: str, topic: str) -> None:
    fill(servers, topic, [b"%d" % number for number in range(100)])
    assert values(batch_of(servers, topic), topic, 17, 42) == [b"%d" % number for number in range(17, 42)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed(servers: str, topic: str, codec: str) -> None:
    wanted: list[bytes | None] = [b"%d" % number * 100 for number in range(100)]
    fill(servers, topic, wanted, compression=codec)
    assert values(batch_of(servers, topic), topic, 0, 100) == wanted


def test_ten_megabytes(servers: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.create_topics([NewTopic("large", 1, configs={"max.message.bytes": "20000000"})])
    wanted: list[bytes | None] = [bytes([number]) * 10_000_000 for number in range(3)]
    fill(servers, "large", wanted, max_request_size=20_000_000)
    assert values(batch_of(servers, "large"), "large", 0, 3) == wanted


def test_read_committed(servers: str, topic: str) -> None:
    with hmb.Producer(servers, transactional_id="x") as producer:
        producer.init_transactions()
        for ends in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send(topic, ends.__name__.encode(), partition=0).result()  # or there is nothing to abort
            ends()
    options = batch_of(servers, topic, **{"kafka.isolation.level": "read_committed"})
    # The last marker may come a little after commit_transaction has returned.
    until(lambda: ranges(BatchReader(options).partitions()) == [f"{topic}-0 [0, 6)"])
    assert values(options, topic, 0, 6) == [b"commit_transaction"] * 2


@pytest.mark.parametrize("fails", [True, False])
def test_records_deleted_before_a_task_comes(
    servers: str, topic: str, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fill(servers, topic, [b"%d" % number for number in range(10)])
    delete_before(servers, topic, 4)
    options = batch_of(servers, topic, failOnDataLoss=str(fails))
    told = f"{topic}-0 [0, 8) is to be read, and the log begins at 4"
    if fails:
        with pytest.raises(DataLossError, match="set the option failOnDataLoss=false") as caught:
            values(options, topic, 0, 8)
        assert told in str(caught.value)
    else:
        assert values(options, topic, 0, 8) == [b"4", b"5", b"6", b"7"]
        assert told in caplog.text


@pytest.mark.parametrize("fails", [True, False])
def test_records_deleted_while_a_task_reads(servers: str, topic: str, fails: bool) -> None:
    """What is behind the gap is still read."""
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
def test_a_topic_deleted_before_a_task_comes(servers: str, topic: str, fails: bool) -> None:
    options = batch_of(servers, topic, failOnDataLoss=str(fails))
    delete(servers, topic)
    if fails:
        with pytest.raises(DataLossError, match=rf"{topic}-0 \[0, 5\) is to be read: there is no topic"):
            values(options, topic, 0, 5)
    else:
        assert values(options, topic, 0, 5) == []


def test_a_topic_deleted_while_a_task_reads(servers: str, topic: str) -> None:
    """What was there before is given; that there is no more is told, after which a query may go on."""
    fill(servers, topic, [b"%d" % number + bytes(1000) for number in range(60)], batch_size=1500)
    small = {"kafka.max.partition.fetch.bytes": "3000"}
    options = batch_of(servers, topic, failOnDataLoss="false", **small)
    reading = tasks.read(options, OffsetRange(TopicPartition(topic, 0), 0, 60))
    first = next(reading)
    delete(servers, topic)
    rest = list(reading)
    assert 0 < first.num_rows + sum(batch.num_rows for batch in rest) < 60


def test_a_time_that_there_is_not(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"])
    (batch,) = tasks.read(batch_of(servers, topic), OffsetRange(TopicPartition(topic, 0), 0, 1))
    assert batch.column("timestamp").null_count == 0
    no_time = pa.array([None, 5], pa.timestamp("ms", "UTC"))
    assert tasks._timestamps(no_time).cast(pa.int64()).to_pylist() == [-1, 5]


@pytest.mark.parametrize("fails", [True, False])
def test_a_log_that_ends_too_early(servers: str, topic: str, fails: bool) -> None:
    """It must not be waited for, either."""
    fill(servers, topic, [b"0", b"1", b"2"])
    options = batch_of(servers, topic, failOnDataLoss=str(fails))
    if fails:
        with pytest.raises(DataLossError, match="the log ends before 3"):
            values(options, topic, 1, 9)
    else:
        assert values(options, topic, 1, 9) == [b"1", b"2"]
        assert values(options, topic, 5, 9) == []


def test_a_task_waits_for_a_broker_that_starts_anew(tmp_path: Any) -> None:
    broker = hmb.Broker(tmp_path).start()
    servers = broker.bootstrap_servers
    fill(servers, "t", [b"1", b"2"])
    options = batch_of(servers, "t")
    broker.stop()
    port = int(servers.rpartition(":")[2])
    again = hmb.Broker(tmp_path, port=port)
    timer = threading.Timer(0.5, again.start)
    timer.start()
    try:
        assert values(options, "t", 0, 2) == [b"1", b"2"]
    finally:
        timer.join()
        again.stop()


# -- batch


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
    with pytest.raises(ValueError, match=r"no record of .* is as young as 9999"):
        planned(startingTimestamp="9999")
    with pytest.raises(ValueError, match="must specify all partitions that are read: missing"):
        planned(startingOffsets='{"other": {"0": 1}}')
    with pytest.raises(DataLossError, match=f"{topic}-0 is to be read from offset 11, and ends before 10"):
        planned(startingOffsets=offsets(11))


def test_a_pattern_is_looked_for_anywhere_in_the_name(servers: str) -> None:
    """As the connector does; and `^...$` means the whole name."""
    for name in ("weather-north", "weather-south", "north"):
        create(servers, name)
        fill(servers, name, [b"v"])

    def planned(pattern: str) -> list[str]:
        given = {"kafka.bootstrap.servers": servers, "subscribePattern": pattern}
        return ranges(BatchReader(source_options(given, streaming=False)).partitions())

    assert planned("eather-") == ["weather-north-0 [0, 1)", "weather-south-0 [0, 1)"]
    assert planned("^north$") == ["north-0 [0, 1)"]
    assert planned("__consumer") == []


# -- streams


def test_a_rate_limit_and_its_shape(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"] * 10)
    reader = stream_of(servers, topic, maxOffsetsPerTrigger="4")
    start = reader.initialOffset()
    assert start == {topic: {"0": 0}}
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    end = reader.latestOffset(start, limit)
    assert end == {topic: {"0": 4}}
    assert reader.reportLatestOffset() == {topic: {"0": 10}}
    assert ranges(reader.partitions(start, end)) == [f"{topic}-0 [0, 4)"]
    reader.stop()


def test_the_first_trigger_does_not_wait_and_the_next_one_does(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"] * 3)
    reader = stream_of(servers, topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {topic: {"0": 3}}
    fill(servers, topic, [b"v"] * 4)
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    fill(servers, topic, [b"v"])
    assert reader.latestOffset(end, ReadAllAvailable()) == {topic: {"0": 8}}
    reader.stop()


def test_a_backlog_that_is_too_small_waits_no_longer_than_allowed(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stream_of(servers, topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    fill(servers, topic, [b"v"])
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    fill(servers, topic, [b"v"])
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    later = time.monotonic() + 3601
    monkeypatch.setattr("hmb.spark.stream.time.monotonic", lambda: later)
    assert reader.latestOffset(end, ReadAllAvailable()) == {topic: {"0": 2}}
    reader.stop()


def test_available_now_goes_to_the_end_as_it_was(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"] * 3)
    reader = stream_of(servers, topic)
    reader.prepareForTriggerAvailableNow()
    fill(servers, topic, [b"v"] * 3)
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == {topic: {"0": 3}}
    reader.stop()


def test_a_new_partition_is_read_from_its_beginning(servers: str, topic: str) -> None:
    reader = stream_of(servers, topic, startingOffsets="latest")
    start = reader.initialOffset()
    with hmb.Admin(servers) as admin:
        admin.create_partitions({topic: 2})
    with hmb.Producer(servers) as producer:
        producer.send(topic, b"v", partition=1)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {topic: {"0": 0, "1": 1}}
    assert ranges(reader.partitions(start, end)) == [f"{topic}-1 [0, 1)"]
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_new_partition_that_has_lost_its_beginning(servers: str, topic: str, fails: bool) -> None:
    fill(servers, topic, [b"v"] * 5)
    delete_before(servers, topic, 2)
    reader = stream_of(servers, topic, failOnDataLoss=str(fails))
    if fails:
        with pytest.raises(DataLossError, match=f"{topic}-0 is new, and begins at 2 instead of 0"):
            reader.partitions({}, {topic: {"0": 5}})
    else:
        assert ranges(reader.partitions({}, {topic: {"0": 5}})) == [f"{topic}-0 [2, 5)"]
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_deleted_between_triggers(servers: str, topic: str, fails: bool) -> None:
    create(servers, f"{topic}-stays")
    reader = stream_of(servers, f"{topic},{topic}-stays", failOnDataLoss=str(fails))
    start = reader.initialOffset()
    delete(servers, topic)
    if fails:
        with pytest.raises(DataLossError, match=f"{topic}-0: not there any more"):
            reader.latestOffset(start, ReadAllAvailable())
    else:
        assert reader.latestOffset(start, ReadAllAvailable()) == {f"{topic}-stays": {"0": 0}}
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_made_again_between_triggers(servers: str, topic: str, fails: bool) -> None:
    """Even if it has more records than the old one had."""
    fill(servers, topic, [b"old"] * 3)
    reader = stream_of(servers, topic, failOnDataLoss=str(fails))
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    delete(servers, topic)
    create(servers, topic)
    fill(servers, topic, [b"new"] * 5)
    if fails:
        with pytest.raises(DataLossError, match=f"topic '{topic}' was deleted and made anew"):
            reader.latestOffset(start, ReadAllAvailable())
    else:
        assert reader.latestOffset(start, ReadAllAvailable()) == {topic: {"0": 5}}
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_an_old_checkpoint_of_a_topic_made_again(servers: str, topic: str, fails: bool) -> None:
    fill(servers, topic, [b"new"] * 2)
    reader = stream_of(servers, topic, failOnDataLoss=str(fails))
    start = {topic: {"0": 1000}}
    end = reader.latestOffset(start, ReadMaxRows(50))
    assert end == {topic: {"0": 2}}
    if fails:
        with pytest.raises(DataLossError, match=f"{topic}-0: the end of the log went from 1000 back to 2"):
            reader.partitions(start, end)
    else:
        assert ranges(reader.partitions(start, end)) == [f"{topic}-0 [0, 2)"]
    reader.stop()


def test_offsets_are_committed(servers: str, topic: str) -> None:
    reader = stream_of(servers, topic, commitOffsets="true", groupIdPrefix=f"g-{topic}")
    reader.commit({topic: {"0": 7}})
    with hmb.Admin(servers) as admin:
        (committed,) = admin.list_group_offsets(f"g-{topic}").values()
    assert committed.offset == 7
    reader.stop()


def test_a_group_that_cannot_be_told_is_no_reason_to_stop(caplog: pytest.LogCaptureFixture) -> None:
    reader = stream_of("127.0.0.1:1", "t", commitOffsets="true")
    with caplog.at_level(logging.WARNING):
        reader.commit({"t": {"0": 7}})
    assert "group hmb-spark" in caplog.text
