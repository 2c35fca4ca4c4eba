"""Tests of rows that Spark writes to a topic.

The tests cover all columns, the errors that a user sees, and batches that run again after a crash.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hmb

pytestmark = [pytest.mark.external, pytest.mark.timeout(300)]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def records(servers: str, topic: str) -> list[hmb.ConsumerRecord]:
    committed = {"isolation_level": "read_committed"}
    with hmb.Consumer(servers, topic, offset="earliest", until="end", **committed) as consumer:
        return list(consumer)


def rows(spark: SparkSession, **columns: str) -> DataFrame:
    return spark.range(0, 10, 1, 2).selectExpr(*(f"{text} AS {name}" for name, text in columns.items()))


def test_all_columns(spark: SparkSession, servers: str, topic: str) -> None:
    frame = rows(
        spark,
        key="CAST(id AS STRING)",
        value="CASE WHEN id > 0 THEN encode(concat('v', id), 'UTF-8') END",
        topic=f"'{topic}'",
        partition="IF(id = 1, 2, NULL)",
        headers="array(struct('h' AS key, CAST('x' AS BINARY) AS value))",
        other="rand()",
    )
    frame.write.format("hmb").mode("append").option("kafka.bootstrap.servers", servers).save()
    found = {record.key: record for record in records(servers, topic)}
    assert {key: record.value for key, record in found.items()} == {
        b"0": None,
        **{b"%d" % number: b"v%d" % number for number in range(1, 10)},
    }
    assert found[b"1"].partition == 2
    assert {record.headers for record in found.values()} == {(("h", b"x"),)}


def test_mistakes(spark: SparkSession, servers: str, topic: str) -> None:
    def save(frame: DataFrame, mode: str = "append", **options: str) -> None:
        given = {"kafka.bootstrap.servers": servers, **options}
        frame.write.format("hmb").mode(mode).options(**given).save()

    with pytest.raises(Exception, match="required attribute 'value' not found"):
        save(rows(spark, key="'a'"), topic=topic)
    with pytest.raises(Exception, match="topic option required when no 'topic' attribute is present"):
        save(rows(spark, value="'a'"))
    with pytest.raises(Exception, match="save mode Overwrite not allowed"):
        save(rows(spark, value="'a'"), "overwrite", topic=topic)
    with pytest.raises(Exception, match="null topic present in the data"):
        save(rows(spark, value="'a'", topic="CAST(NULL AS STRING)"))
    with pytest.raises(Exception, match=r"row \d of task \d .* was not delivered"):
        save(rows(spark, value="'a'", partition="77"), topic=topic)
    assert records(servers, topic) == []


def test_exactly_once_in_a_batch_query(spark: SparkSession, servers: str, topic: str) -> None:
    frame = rows(spark, value="CAST(id AS STRING)")
    options = {"kafka.bootstrap.servers": servers, "topic": topic, "exactlyOnce": "true"}
    frame.write.format("hmb").mode("append").options(**options).save()
    # This call is another job, which writes all rows again.
    frame.write.format("hmb").mode("append").options(**options).save()
    assert sorted(record.value or b"" for record in records(servers, topic)) == sorted(
        b"%d" % (n // 2) for n in range(20)
    )


@pytest.mark.parametrize(("exactly_once", "times"), [("true", 1), ("false", 2)])
def test_a_batch_that_runs_again_after_a_crash(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path, exactly_once: str, times: int
) -> None:
    """A batch runs again after a crash, and its rows are written again.

    The test deletes Spark's commit of the batch, as if Spark had died just before this commit.
    """
    source = f"{topic}-source"
    with hmb.Producer(servers) as producer:
        producer.send_many(source, [b"%d" % number for number in range(100)], partition=0)

    def run() -> None:
        read = spark.readStream.format("hmb").option("kafka.bootstrap.servers", servers)
        stream = read.option("subscribe", source).option("startingOffsets", "earliest").load()
        write = stream.select("value").writeStream.format("hmb").option("kafka.bootstrap.servers", servers)
        write = write.option("topic", topic).option("exactlyOnce", exactly_once)
        query = write.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()

    run()
    (tmp_path / "commits" / "0").unlink()
    (tmp_path / "commits" / ".0.crc").unlink()
    run()
    values = [record.value for record in records(servers, topic)]
    assert (len(values), len(set(values))) == (100 * times, 100)
