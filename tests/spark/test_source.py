"""Tests of whole queries with Spark: batch queries, streaming queries, and the errors that a user sees.

Failures of brokers and changes of topics are tested in test_trouble.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hmb
from hmb.protocol.topics import TopicPartition
from tests.spark.queries import batch, fill, read_back, run

pytestmark = [pytest.mark.external, pytest.mark.timeout(300)]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 300  # records in the topic, spread over three partitions


@pytest.fixture
def filled(servers: str, topic: str) -> str:
    fill(servers, topic, range(RECORDS))
    return topic


def test_a_batch_has_every_record_once(spark: SparkSession, servers: str, filled: str) -> None:
    frame = batch(spark, servers, subscribe=filled, minPartitions="7", includeHeaders="true")
    assert frame.rdd.getNumPartitions() == 6, "as near to seven as equal partitions can be cut"
    rows = frame.selectExpr("CAST(CAST(value AS STRING) AS INT) AS n", "partition", "offset", "headers").collect()
    assert sorted((row.n, row.partition, row.offset) for row in rows) == [(n, n % 3, n // 3) for n in range(RECORDS)]
    assert {row.headers for row in rows} == {None}


def test_selected_columns(spark: SparkSession, servers: str, filled: str) -> None:
    frame = batch(spark, servers, subscribe=filled, columns="offset,partition")
    assert frame.schema.simpleString() == "struct<offset:bigint,partition:int>"
    assert sorted(frame.collect()) == [(n // 3, n % 3) for n in range(RECORDS)]


def test_a_stream_continues_at_its_checkpoint(
    spark: SparkSession, servers: str, filled: str, tmp_path: Path
) -> None:
    query = run(spark, servers, tmp_path, subscribe=filled, maxOffsetsPerTrigger="90")
    assert [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]] == [90] * 3 + [
        30
    ]
    fill(servers, filled, range(RECORDS, RECORDS + 30))
    committing = {"commitOffsets": "true", "groupIdPrefix": f"g-{filled}"}
    query = run(spark, servers, tmp_path, subscribe=filled, **committing)
    assert query.lastProgress["numInputRows"] == 30
    with hmb.Admin(servers) as admin:
        assert {each.offset for each in admin.list_group_offsets(f"g-{filled}").values()} == {(RECORDS + 30) // 3}
    assert read_back(spark, tmp_path) == list(range(RECORDS + 30))


@pytest.mark.parametrize("fails", [True, False])
def test_a_stream_whose_next_records_are_gone(
    spark: SparkSession, servers: str, filled: str, tmp_path: Path, fails: bool
) -> None:
    run(spark, servers, tmp_path, subscribe=filled)
    fill(servers, filled, range(RECORDS, 2 * RECORDS))
    with hmb.Admin(servers) as admin:
        admin.delete_records({TopicPartition(filled, 0): 150})
    if fails:
        with pytest.raises(Exception, match=rf"cannot read all of {filled}-0 \[100, 200\): the log starts at 150"):
            run(spark, servers, tmp_path, subscribe=filled)
        return
    run(spark, servers, tmp_path, subscribe=filled, failOnDataLoss="false")
    lost = {number for number in range(RECORDS, RECORDS + 150) if number % 3 == 0}
    assert read_back(spark, tmp_path) == [number for number in range(2 * RECORDS) if number not in lost]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of the following options must be specified"),
        ({"subscribe": "no-such-topic"}, "there is no topic 'no-such-topic'"),
        ({"subscribe": "t", "kafka.group.protocoll": "x"}, "did you mean 'kafka.group.protocol'"),
        ({"subscribe": "t", "minPartitions": "-1"}, "option 'minPartitions'"),
        ({"subscribe": "t", "kafka.auto.offset.reset": "earliest"}, "Instead set the source option 'startingOffsets'"),
    ],
)
def test_mistakes_are_named(spark: SparkSession, servers: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        batch(spark, servers, **options).collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of the following options must be specified"),
        ({"subscribe": "t", "startingOfsets": "earliest"}, "did you mean 'startingOffsets'"),
        ({"subscribe": "t", "kafka.auto.offset.reset": "earliest"}, "Instead set the source option 'startingOffsets'"),
    ],
)
def test_mistakes_are_named_by_load(spark: SparkSession, servers: str, options: dict[str, str], message: str) -> None:
    """The error of `load` names a wrong option.

    Before a bug was fixed, PySpark reported a wrong option of a streaming query as an UnboundLocalError.
    """
    for reader in (spark.read, spark.readStream):
        with pytest.raises(Exception, match=message):
            reader.format("hmb").option("kafka.bootstrap.servers", servers).options(**options).load()


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"endingOffsets": "latest"}, None, "option 'endingOffsets' is not valid in streaming queries"),
        ({}, "key string, value string", "the columns of a topic are fixed"),
    ],
    ids=["end", "schema"],
)
def test_mistakes_of_a_stream_are_named_by_start(
    spark: SparkSession,
    servers: str,
    filled: str,
    tmp_path: Path,
    options: dict[str, str],
    schema: str | None,
    message: str,
) -> None:
    reader = spark.readStream.format("hmb").options(**{"kafka.bootstrap.servers": servers, "subscribe": filled})
    reader = reader.options(**options) if schema is None else reader.schema(schema)
    query = reader.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(Exception, match=message) as caught:
        query.awaitTermination(120)
    assert "UnboundLocalError" not in str(caught.value)


def test_sql_reads_a_topic_through_a_view(spark: SparkSession, servers: str, filled: str) -> None:
    """SQL can read a topic through a view, but not through a table.

    Spark does not store the options of a table if its data source is written in Python, and the error says so.
    """
    options = f"OPTIONS (`kafka.bootstrap.servers` '{servers}', subscribe '{filled}')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW records USING hmb {options}")
    assert spark.sql("SELECT count(*) FROM records").collect() == [(RECORDS,)]
    spark.sql(f"CREATE TABLE records_table USING hmb {options}")
    with pytest.raises(Exception, match="use CREATE TEMPORARY VIEW"):
        spark.sql("SELECT count(*) FROM records_table").collect()
    spark.sql("DROP TABLE records_table")


def test_a_schema_of_the_user_is_refused(spark: SparkSession, servers: str, filled: str) -> None:
    reader = spark.read.format("hmb").option("kafka.bootstrap.servers", servers).option("subscribe", filled)
    with pytest.raises(Exception, match="the columns of a topic are fixed"):
        reader.schema("key string, value string").load().collect()
