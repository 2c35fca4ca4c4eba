"""Tests of failures during a query, or between two runs: brokers stop, topics change, or checkpoints are old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hmb
from hmb.client.admin import NewTopic, raised
from tests.spark.queries import batch, fill, read_back, run, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.external, pytest.mark.timeout(300)]

SETTINGS = {"num.partitions": "3", "log.flush.acks.all": "false"}
IMPATIENT = {"kafka.default.api.timeout.ms": "1000"}


class Mortal:
    """A broker that can be stopped and started again with the same directory and port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._broker = hmb.Broker(directory, config=SETTINGS).start()
        self.servers = self._broker.bootstrap_servers

    def stop(self) -> None:
        self._broker.stop()

    def start(self) -> None:
        port = int(self.servers.rpartition(":")[2])
        self._broker = hmb.Broker(self._directory, port=port, config=SETTINGS).start()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Mortal]:
    broker = Mortal(tmp_path / "broker")
    yield broker
    broker.stop()


@contextmanager
def streaming(spark: SparkSession, servers: str, directory: Path, **options: str) -> Iterator[StreamingQuery]:
    """Start a stream, and wait until it has read all available records."""
    query = start(spark, servers, directory, **options)
    try:
        query.processAllAvailable()
        yield query
    finally:
        query.stop()


def make_again(servers: str, topic: str) -> None:
    with hmb.Admin(servers) as admin:
        raised(admin.delete_topics([topic])[topic])
        raised(admin.create_topics([NewTopic(topic, 3)])[topic])


# Brokers that stop and restart


def test_a_batch_whose_broker_restarts(spark: SparkSession, mortal: Mortal) -> None:
    """The broker restarts during a batch. Spark runs the tasks one after the other, so some run after the restart."""
    fill(mortal.servers, "t", range(300))
    rows = (
        batch(spark, mortal.servers, subscribe="t").selectExpr("CAST(CAST(value AS STRING) AS INT)").toLocalIterator()
    )
    found = [next(rows)[0]]
    mortal.stop()
    mortal.start()
    assert sorted(found + [row[0] for row in rows]) == list(range(300))


def test_a_batch_whose_broker_dies(spark: SparkSession, mortal: Mortal) -> None:
    fill(mortal.servers, "t", range(300))
    rows = batch(spark, mortal.servers, subscribe="t", **IMPATIENT).toLocalIterator()
    next(rows)
    mortal.stop()
    with pytest.raises(Exception, match=rf"ConnectionFailed: .*{mortal.servers}"):
        list(rows)


def test_a_stream_whose_broker_restarts(spark: SparkSession, mortal: Mortal, tmp_path: Path) -> None:
    fill(mortal.servers, "t", range(30))
    with streaming(spark, mortal.servers, tmp_path, subscribe="t") as query:
        mortal.stop()
        mortal.start()
        fill(mortal.servers, "t", range(30, 60))
        query.processAllAvailable()
        assert query.exception() is None
    assert read_back(spark, tmp_path) == list(range(60))


def test_a_stream_whose_broker_dies_continues_after_its_own_restart(
    spark: SparkSession, mortal: Mortal, tmp_path: Path
) -> None:
    fill(mortal.servers, "t", range(30))
    with streaming(spark, mortal.servers, tmp_path, subscribe="t", **IMPATIENT) as query:
        mortal.stop()
        with pytest.raises(Exception, match=rf"ConnectionFailed: .*{mortal.servers}"):
            query.awaitTermination(120)
    mortal.start()
    fill(mortal.servers, "t", range(30, 60))
    run(spark, mortal.servers, tmp_path, subscribe="t")
    assert read_back(spark, tmp_path) == list(range(60))


@pytest.mark.parametrize("exactly_once", ["false", "true"])
def test_a_streaming_write_whose_broker_is_away(
    spark: SparkSession, mortal: Mortal, tmp_path: Path, exactly_once: str
) -> None:
    """A streaming write waits for a broker that is not available.

    Before a bug was fixed, each such query ended if the broker was away for one second.
    """
    with hmb.Admin(mortal.servers) as admin:
        raised(admin.create_topics([NewTopic("copy", 3)])["copy"])
    fill(mortal.servers, "t", range(30))
    given = {"kafka.bootstrap.servers": mortal.servers}
    stream = spark.readStream.format("hmb").options(**given, subscribe="t", startingOffsets="earliest").load()
    writer = stream.select("value").writeStream.format("hmb").options(**given, topic="copy", exactlyOnce=exactly_once)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        for first in (30, 60):
            fill(mortal.servers, "t", range(first, first + 30))
            mortal.stop()
            time.sleep(1)
            mortal.start()
            query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    values = batch(spark, mortal.servers, subscribe="copy").selectExpr("CAST(CAST(value AS STRING) AS INT)").collect()
    assert sorted({row[0] for row in values}) == list(range(90))
    assert exactly_once == "false" or len(values) == 90


# Topics that change


def test_a_partition_is_added_to_a_stream(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    fill(servers, topic, range(30))
    with streaming(spark, servers, tmp_path, subscribe=topic, startingOffsets="latest") as query:
        with hmb.Admin(servers) as admin:
            raised(admin.create_partitions({topic: 4})[topic])
        with hmb.Producer(servers) as producer:
            for number in range(30, 40):
                producer.send(topic, b"%d" % number, partition=3)
        query.processAllAvailable()
    assert read_back(spark, tmp_path) == list(range(30, 40))


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_is_created_again_during_a_stream(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path, fails: bool
) -> None:
    """A topic is created again during a stream.

    The new topic has fewer records than the old one, and the query must not skip them.
    """
    fill(servers, topic, range(30))
    with streaming(spark, servers, tmp_path, subscribe=topic, failOnDataLoss=str(fails)) as query:
        make_again(servers, topic)
        fill(servers, topic, range(100, 106))
        if fails:
            with pytest.raises(Exception, match=r"DataLossError: .*set the option failOnDataLoss=false"):
                query.awaitTermination(120)
        else:
            query.processAllAvailable()
    assert read_back(spark, tmp_path) == [*range(30), *(() if fails else range(100, 106))]


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_is_created_again_between_two_runs(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path, fails: bool
) -> None:
    fill(servers, topic, range(30))
    run(spark, servers, tmp_path, subscribe=topic)
    make_again(servers, topic)
    fill(servers, topic, range(100, 106))
    if fails:
        with pytest.raises(Exception, match=rf"DataLossError: {topic}-0: the end of the log moved back from 10 to 2"):
            run(spark, servers, tmp_path, subscribe=topic)
    else:
        run(spark, servers, tmp_path, subscribe=topic, failOnDataLoss="false")
    assert read_back(spark, tmp_path) == [*range(30), *(() if fails else range(100, 106))]


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_is_deleted_between_two_runs(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path, fails: bool
) -> None:
    fill(servers, topic, range(30))
    run(spark, servers, tmp_path, subscribe=topic)
    with hmb.Admin(servers) as admin:
        raised(admin.delete_topics([topic])[topic])
    if fails:
        with pytest.raises(Exception, match=rf"DataLossError: deleted partitions: {topic}-0, {topic}-1, {topic}-2"):
            run(spark, servers, tmp_path, subscribe=topic)
    else:
        run(spark, servers, tmp_path, subscribe=topic, failOnDataLoss="false")


# Large records


def test_a_record_of_ten_megabytes_is_written_and_read(spark: SparkSession, servers: str, topic: str) -> None:
    large = {"max.message.bytes": "20000000"}
    with hmb.Admin(servers) as admin:
        raised(admin.create_topics([NewTopic(f"{topic}-large", 1, configs=large)])[f"{topic}-large"])
    frame = spark.range(0, 3, 1, 1).selectExpr(
        "CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 10000000) AS value"
    )
    write = frame.write.format("hmb").mode("append").option("kafka.bootstrap.servers", servers)
    with pytest.raises(Exception, match=r"row 0 of task 0 .* was not delivered: .*max\.request\.size"):
        write.option("topic", f"{topic}-large").save()
    write.option("topic", f"{topic}-large").option("kafka.max.request.size", "20000000").save()
    rows = batch(spark, servers, subscribe=f"{topic}-large")
    found = rows.selectExpr("CAST(key AS STRING)", "length(value)", "hex(right(value, 2))", "offset").collect()
    assert [tuple(row) for row in found] == [(str(n), 10_000_000, f"3{n}3{n}", n) for n in range(3)]


# Checkpoints of earlier queries

# A checkpoint as Spark 4.2's own Kafka connector writes it, without `conf`. The query has read 10 records of each of
# the three partitions.
CHECKPOINT = {
    "metadata": '{"id":"0b4b1d7c-61a1-4f0c-9f6f-9c3d9ee3a6f2"}',
    "sources/0/0": '\0v1\n{"TOPIC":{"0":0,"1":0,"2":0}}',
    "offsets/0": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1763762400000,"conf":{}}\n'
    '{"TOPIC":{"2":10,"1":10,"0":10}}',
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "../rows/_spark_metadata/0": "v1",  # the metadata file of Spark's file sink for batch 0; it lists no files
}


def checkpoint_of_the_connector(directory: Path, topic: str) -> None:
    for name, text in CHECKPOINT.items():
        path = directory / "checkpoint" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("TOPIC", topic))


def test_a_checkpoint_of_the_connector(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    """A query can change its source from `kafka` to `hmb`, and continues at the offsets in its checkpoint."""
    fill(servers, topic, range(60))
    checkpoint_of_the_connector(tmp_path, topic)
    run(spark, servers, tmp_path, subscribe=topic)
    assert read_back(spark, tmp_path) == list(range(30, 60))


@pytest.mark.parametrize("fails", [True, False])
def test_an_old_checkpoint_of_records_that_have_expired(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path, fails: bool
) -> None:
    """With failOnDataLoss=true, a query fails if its unread records were deleted while it was stopped.

    With failOnDataLoss=false, the query continues, and reads the records that are written later.
    """
    fill(servers, topic, range(60))
    checkpoint_of_the_connector(tmp_path, topic)
    with hmb.Admin(servers) as admin:
        admin.delete_records({hmb.TopicPartition(topic, number): 20 for number in range(3)})
    if fails:
        with pytest.raises(Exception, match=rf"DataLossError: cannot read all of {topic}-\d .*: the log starts at 20"):
            run(spark, servers, tmp_path, subscribe=topic)
        return
    run(spark, servers, tmp_path, subscribe=topic, failOnDataLoss="false")
    fill(servers, topic, range(100, 103))
    run(spark, servers, tmp_path, subscribe=topic)
    assert read_back(spark, tmp_path) == [100, 101, 102]


def test_a_checkpoint_of_another_source(spark: SparkSession, servers: str, topic: str, tmp_path: Path) -> None:
    checkpoint_of_the_connector(tmp_path, topic)
    path = tmp_path / "checkpoint" / "offsets" / "0"
    path.write_text(path.read_text().rpartition("\n")[0] + '\n{"logOffset":3}')
    with pytest.raises(Exception, match="is this the checkpoint of another query"):
        run(spark, servers, tmp_path, subscribe=topic)
