"""Tests that queries read from and write to a broker that requires TLS and a login.

Each connection of a query needs the settings of TLS and SASL: the connections of the tasks, and those of the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hmb
import hmb.spark.loads
from hmb.hailstorm import Sink, Spout, Topology
from hmb.hailstorm.runners.spark.query import on_spark

pytestmark = [pytest.mark.external, pytest.mark.timeout(300)]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = ["0", "1", "2"]


@pytest.fixture(scope="module")
def secured() -> Iterator[hmb.Broker]:
    with hmb.Broker(users={"alice": "alice-secret"}, tls=True) as broker:
        yield broker


@pytest.fixture
def options(secured: hmb.Broker) -> dict[str, str]:
    client = {"bootstrap.servers": secured.bootstrap_servers, **secured.security}
    return {f"kafka.{name}": value for name, value in client.items()}


@pytest.fixture
def filled(spark: SparkSession, options: dict[str, str], request: pytest.FixtureRequest) -> str:
    """Write the records of VALUES exactly once to a new topic, and return the topic's name."""
    topic = str(request.node.name)
    rows = spark.range(len(VALUES)).selectExpr("CAST(id AS STRING) AS value")
    writer = rows.write.format("hmb").mode("append").options(**options)
    writer.option("topic", topic).option("exactlyOnce", "true").save()
    return topic


def test_a_streaming_query_reads_and_commits_offsets(
    spark: SparkSession, secured: hmb.Broker, options: dict[str, str], filled: str, tmp_path: Path
) -> None:
    chosen = {"subscribe": filled, "startingOffsets": "earliest", "commitOffsets": "true", "kafka.group.id": filled}
    frame = spark.readStream.format("hmb").options(**options, **chosen).load()
    writer = frame.selectExpr("CAST(value AS STRING)").writeStream.format("memory").queryName(filled)
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert sorted(row.value for row in spark.table(filled).collect()) == VALUES
    with hmb.Admin(secured.bootstrap_servers, security=secured.security) as admin:
        (committed,) = admin.list_group_offsets(filled).values()
    assert committed.offset >= len(VALUES)  # The log also contains the markers of the transactions.


def test_a_load_reads_the_topic(spark: SparkSession, options: dict[str, str], filled: str, tmp_path: Path) -> None:
    servers = options["kafka.bootstrap.servers"]
    security = {name: value for name, value in options.items() if name != "kafka.bootstrap.servers"}
    (run,) = hmb.spark.loads.load(filled, tmp_path, servers, options=security, spark=spark)
    assert run.rows == len(VALUES)


def test_a_topology_reads_the_topic(spark: SparkSession, secured: hmb.Broker, filled: str, tmp_path: Path) -> None:
    read: list[Any] = []
    topology = Topology("secured")
    topology.spout("records", Spout(filled))
    topology.sink("read", Sink(read.append), after="records")
    servers, security = secured.bootstrap_servers, secured.security
    (query,) = on_spark(topology, spark, servers, str(tmp_path), until_end=True, security=security)
    assert query.awaitTermination(120)
    assert sorted(read) == VALUES
