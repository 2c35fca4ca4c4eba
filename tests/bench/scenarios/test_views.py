"""Tests that the tables of each benchmark compare the correct brokers or clients."""

from __future__ import annotations

from typing import Any

from hmb.bench.report.samples import Sample
from hmb.bench.report.tables import Table
from hmb.bench.scenarios import commits, compaction, connections, consume, fetch, memory, recovery, spark, threads


def sample(suite: str, parameters: dict[str, Any], number: int = 0, broker: str = "HMB", **figures: float) -> Sample:
    return Sample(suite, broker, parameters.pop("client", "HMB"), number, parameters, figures)


def rows_of(table: Table) -> list[dict[str, str]]:
    heading, *rows = table.rows
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_the_broker_cpu_of_a_record_is_compared_with_kafkas() -> None:
    sizes = {"message_bytes": 100, "batch_bytes": 16_384, "records": 1_000_000}
    runs = [
        sample("consume", dict(sizes), number, broker, records_per_second=rate, broker_cpu_seconds=cpu)
        for number in range(2)
        for broker, rate, cpu in (("HMB", 3e6, 1.0), ("Kafka 4.3.0", 1e6, 2.0))
    ]
    (table,) = consume.VIEW.tables(runs)
    assert table.rows[0][3:] == ["broker CPU, us/record", "over Kafka 4.3.0"]
    assert table.rows[1][2:] == ["3.00 (3.00 .. 3.00)", "1.00", "0.50 (0.50 .. 0.50)"]


def test_connections_show_which_share_of_the_first_throughput_is_left() -> None:
    sizes = {"message_bytes": 100, "records_in_batch": 100, "acks": 1}
    runs = [
        sample("connections", {"connections": n, "partitions": n, **sizes}, records_per_second=rate, p50_ms=1, p99_ms=2)
        for n, rate in ((1, 1000.0), (100, 800.0))
    ]
    *_, left = connections.VIEW.tables(runs)
    assert left.rows[1:] == [
        ["HMB", "1 connection, 1 partition", ""],
        ["", "100 connections, 100 partitions", "0.80 (0.80 .. 0.80)"],
    ]


def test_layouts_are_compared_with_a_thread_for_each_connection() -> None:
    sizes = {"message_bytes": 100, "batch_bytes": 195, "producers": 1}
    runs = [
        sample("threads", {"layout": layout, "handlers": n, **sizes}, records_per_second=rate, p99_ms=1)
        for layout, n, rate in (("a thread a connection", 0, 100.0), ("staged, 1 handler", 1, 50.0))
    ]
    alone, staged = rows_of(threads.VIEW.tables(runs)[0])
    assert alone["over a thread a connection"] == ""
    assert staged["over a thread a connection"] == "0.50 (0.50 .. 0.50)"


def test_recovery_reads_old_runs_of_the_log_alone() -> None:
    old = {"seconds": 1.0, "cpu_seconds": 0.9, "mb_per_second": 1000.0, "us_a_batch": 2.0}
    new = {"start_after_kill_seconds": 2.0, "start_seconds": 0.5, "broker_cpu_seconds": 1.5}
    sizes = {"bytes": 10**9, "batch_bytes": 1000}
    alone, start = recovery.VIEW.tables([sample("recovery", dict(sizes), **old), sample("recovery", sizes, **new)])
    assert (alone.title, rows_of(alone)[0]["MB/s"]) == ("1 GB, the log alone", "1,000")
    assert start.title == "1 GB that a killed broker left"
    assert rows_of(start)[0]["start after a kill, s"] == "2.00 (2.00 .. 2.00)"


def test_commits_are_compared_with_the_last_broker() -> None:
    names = "HMB, on disk", "HMB, in page cache", "Kafka 4.3.0, in page cache"
    figures = {"p50_ms": 1.0, "p99_ms": 2.0, "broker_cpu_us_per_commit": 3.0}
    runs = [
        sample("commits", {"connections": 1, "ahead": 1}, 0, name, commits_per_second=rate, **figures)
        for name, rate in zip(names, (50.0, 100.0, 80.0), strict=True)
    ]
    (table,) = commits.VIEW.tables(runs)
    assert [row[2] for row in table.rows] == [
        "over Kafka 4.3.0, in page cache", "0.62 (0.62 .. 0.62)", "1.25 (1.25 .. 1.25)", "",
    ]  # fmt: skip


def test_a_compaction_is_compared_by_its_time() -> None:
    parameters = {"codec": "lz4", "bytes": 10**9, "log_bytes": 5 * 10**8}
    runs = [
        sample("compaction", dict(parameters), 0, name, seconds=seconds, cpu_seconds=seconds / 2, left_bytes=5e7)
        for name, seconds in (("HMB", 2.0), ("Kafka 4.3.0", 3.0))
    ]
    table = compaction.VIEW.tables(runs)[0]
    assert table.rows[1][:5] == ["lz4, 500 MB", "HMB", "50", "2.00 (2.00 .. 2.00)", "0.67 (0.67 .. 0.67)"]


def test_a_fetch_in_a_session_is_compared_with_a_full_one() -> None:
    runs = [
        sample("fetch", {"partitions": 100, "kind": kind}, broker_cpu_us_per_fetch=cost, bytes_per_fetch=70.0)
        for kind, cost in (("full", 800.0), ("in a session", 100.0))
    ]
    (table,) = fetch.VIEW.tables(runs)
    assert table.rows[2][3] == "0.12 (0.12 .. 0.12)"
    (interrupted,) = fetch.VIEW.tables(runs[:1])
    assert len(interrupted.rows) == 2


def test_sparks_sources_are_compared_with_the_connector() -> None:
    runs = [
        sample("spark", {"kind": "read", "partitions": 1, "client": f"spark {source}"},
               records_per_second=rate, records_per_cpu_second=rate, python_worker_bytes=2e8)
        for source, rate in (("hmb", 3e6), ("kafka", 2e6))
    ]  # fmt: skip
    (table,) = spark.VIEW.tables(runs)
    assert table.rows[1][:2] == ["read, 1 partition", "hmb"] and table.rows[1][3] == "1.50 (1.50 .. 1.50)"


def test_memory_of_a_broker_and_of_a_producer_have_their_own_tables() -> None:
    broker = sample("memory", {"gigabytes": 10}, idle_bytes=30e6, resident_bytes=40e6, most_bytes=50e6)
    producer = sample("memory", {"gigabytes": 10, "of": "producer"}, idle_bytes=30e6, most_bytes=90e6)
    first, second = memory.VIEW.tables([broker, producer])
    assert first.rows[1] == ["HMB", "30.0", "40.0", "50.0"] and second.rows[1] == ["HMB", "30.0", "90.0"]
