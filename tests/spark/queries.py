"""Queries that several tests use: Spark reads numbers from a topic with three partitions, and writes Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import hmb

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def fill(servers: str, topic: str, numbers: range) -> None:
    with hmb.Producer(servers) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % 3)


def batch(spark: SparkSession, servers: str, **options: str) -> DataFrame:
    return spark.read.format("hmb").option("kafka.bootstrap.servers", servers).options(**options).load()


def run(spark: SparkSession, servers: str, directory: Path, **options: str) -> StreamingQuery:
    """Run a stream that writes all available records to Parquet files and then ends."""
    query = start(spark, servers, directory, available_now=True, **options)
    query.awaitTermination(240)
    return query


def start(
    spark: SparkSession, servers: str, directory: Path, *, available_now: bool = False, **options: str
) -> StreamingQuery:
    """Start a stream that writes to Parquet files until the caller stops it."""
    given = {"startingOffsets": "earliest", "kafka.bootstrap.servers": servers, **options}
    writer = spark.readStream.format("hmb").options(**given).load().writeStream.format("parquet")
    if available_now:
        writer = writer.trigger(availableNow=True)
    return writer.option("checkpointLocation", str(directory / "checkpoint")).start(str(directory / "rows"))


def read_back(spark: SparkSession, directory: Path) -> list[int]:
    rows = spark.read.parquet(str(directory / "rows")).selectExpr("CAST(CAST(value AS STRING) AS INT) AS n").collect()
    return sorted(row.n for row in rows)
