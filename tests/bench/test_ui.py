"""Tests of the command `hmb bench ui`: its table, and the broker that it measures."""

from __future__ import annotations

from hmb.bench.report.samples import Sample
from hmb.bench.ui import GOALS, VIEW, link, reader, served

REACHED = {
    "first_drawing_ms": 800.0,
    "changes_per_second": 5.0,
    "metrics_ms": 60.0,
    "lost_percent": 0.4,
    "cpu_percent": -0.2,
    "memory_mb": 6.0,
}


def table(*changes: dict[str, float]) -> dict[str, list[str]]:
    samples = [Sample("ui", "HMB", "HMB", n, {}, REACHED | change) for n, change in enumerate(changes)]
    (shown,) = VIEW.tables(samples)
    return {row[0]: row for row in shown.rows[1:]}


def test_the_table_compares_the_median_of_each_figure_with_its_goal() -> None:
    rows = table({"metrics_ms": 90.0}, {"metrics_ms": 110.0}, {"metrics_ms": 95.0})
    assert rows["metrics, ms"] == ["metrics, ms", "95.0", "90.0 .. 110.0", "at most 100", "yes"]
    assert [row[-1] for row in rows.values()] == ["yes"] * len(GOALS)


def test_a_figure_that_misses_its_goal_is_named() -> None:
    rows = table({"changes_per_second": 4.9, "lost_percent": 2.1})
    assert {label for label, row in rows.items() if row[-1] == "no"} == {"changes a second", "lost throughput, %"}


def test_the_reader_of_the_stream_ends_with_its_block() -> None:
    with served() as broker, reader(link(broker)):
        pass
