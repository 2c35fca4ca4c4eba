"""Tests of the lag of a streaming query, which is the number of records that the query has not read yet."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")

import hmb
import hmb.spark
from hmb.spark.metrics import Lag, LagListener
from tests.spark.queries import fill, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def progress(*sources: tuple[str | None, str | None]) -> Any:
    return SimpleNamespace(sources=[SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in sources])


def test_the_lag_of_all_partitions() -> None:
    one = ('{"t": {"0": 90, "1": 50}}', '{"t": {"0": 100, "1": 50}}')
    assert hmb.spark.lag(progress(one)) == Lag(minimum=0, average=5.0, maximum=10, records=10)
    two = ('{"u": {"0": 1}}', '{"u": {"0": 3}}')
    assert hmb.spark.lag(progress(one, two)) == Lag(0, 4.0, 10, 12)


@pytest.mark.parametrize("offset", [None, "5", '{"logOffset": 3}', "not JSON", '"text"'])
def test_sources_with_other_offsets_are_left_out(offset: str | None) -> None:
    assert hmb.spark.lag(progress((offset, offset))) is None
    one = ('{"t": {"0": 1}}', '{"t": {"0": 4}}')
    assert hmb.spark.lag(progress((offset, offset), one)) == Lag(3, 3.0, 3, 3)


def test_a_partition_that_was_deleted_has_no_lag() -> None:
    assert hmb.spark.lag(progress(('{"t": {"0": 5, "1": 7}}', '{"t": {"0": 6}}'))) == Lag(0, 0.5, 1, 1)


def test_the_bytes_are_estimated_from_the_size_of_the_log(tmp_path: Path) -> None:
    """The lag in bytes is estimated from the size of the log.

    Each partition has 100 records. The query has read 90 of the first partition, and none of the second partition.
    """
    with hmb.Broker(tmp_path, config={"num.partitions": "2"}) as broker, hmb.Admin(broker.bootstrap_servers) as admin:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for number in range(200):
                producer.send("t", b"x" * (100 if number % 2 else 10), partition=number % 2)
        one = ('{"t": {"0": 90, "1": 0}}', '{"t": {"0": 100, "1": 100}}')
        found = hmb.spark.lag(progress(one), admin)
        short, long = (sum(path.stat().st_size for path in tmp_path.glob(f"t-{n}/*.log")) for n in (0, 1))
        assert 10 * short > long > 5 * short > 0
        assert found == Lag(10, 55.0, 100, 110, bytes=round(short / 10 + long))
        deleted = ('{"gone": {"0": 0}}', '{"gone": {"0": 8}}')
        assert hmb.spark.lag(progress(one, deleted), admin) == Lag(8, 118 / 3, 100, 118, bytes=round(short / 10 + long))


@pytest.mark.external
@pytest.mark.timeout(300)
def test_a_listener_reports_the_lag_of_each_trigger(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    """A listener reports the lag after each trigger.

    Each trigger reads 30 of 90 records, so the lag decreases by 30.
    """
    fill(servers, topic, range(90))
    reported: list[int] = []
    is_finished = threading.Event()

    def report(progress: Any, lag: Lag) -> None:
        reported.append(lag.records)
        if lag.records == 0:
            is_finished.set()

    listener = LagListener(report)
    spark.streams.addListener(listener)
    try:
        run(spark, servers, tmp_path, subscribe=topic, maxOffsetsPerTrigger="30")
        assert is_finished.wait(60), reported
    finally:
        spark.streams.removeListener(listener)
    assert reported[:3] == [60, 30, 0]
