"""Tests of views: a view turns the samples of a benchmark into tables with medians, ratios and a summary."""

from __future__ import annotations

from hmb.bench.report.samples import Sample
from hmb.bench.report.tables import Table
from hmb.bench.report.view import Column, SampleView

VIEW = SampleView(
    columns=(
        Column("rate", "records/s", compare=True, more_is_better=True),
        Column("cpu", "us/record", 1e6, "records", spread=False, compare=True),
        Column("other", "other"),
    ),
    title=lambda _: "Rates",
    cell=lambda sample: f"{sample.parameters['size']} B",
)


def run(broker: str, number: int, size: int, rate: float, cpu: float = 1.0) -> Sample:
    return Sample("x", broker, "", number, {"size": size, "records": 1e6}, {"rate": rate, "cpu": cpu})


def rows_of(table: Table) -> list[dict[str, str]]:
    heading, *rows = table.rows
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_a_ratio_is_of_the_runs_of_a_round_and_not_of_medians() -> None:
    samples = [
        run(broker, number, 100, rate)
        for broker, rates in (("HMB", (100.0, 60.0, 300.0)), ("Kafka", (50.0, 60.0, 100.0)))
        for number, rate in enumerate(rates)
    ]
    (table,) = VIEW.tables(samples)
    assert table.rows[0] == ["", "", "records/s", "over Kafka", "us/record", "over Kafka"]
    assert [row[3] for row in table.rows[1:]] == ["2.00 (1.00 .. 3.00)", ""]
    assert table.rows[1][:3] == ["100 B", "HMB", "100 (60.00 .. 300)"] and table.rows[2][0] == ""


def test_one_contestant_alone_has_no_ratio_and_no_summary() -> None:
    (table,) = VIEW.tables([run("HMB", number, size, 1.0) for number in range(5) for size in (1, 2)])
    assert table.rows[0] == ["", "", "records/s", "us/record"]


def test_a_figure_that_one_run_lacks_is_left_empty() -> None:
    samples = [run("HMB", 0, 1, 1.0), Sample("x", "HMB", "", 1, {"size": 1, "records": 1e6}, {"cpu": 1.0})]
    (table,) = VIEW.tables(samples)
    assert table.rows[1][2:] == ["", "1.0"]


def test_five_rounds_show_in_which_cells_all_rounds_agree() -> None:
    """After five rounds, a table lists the workloads for which one HMB was better than another HMB in every round.

    The workloads have records of 100 bytes and of 200 bytes. The other HMB has the name `HMB (before)`. With 100 bytes,
    the rate of `HMB` is greater in all five rounds, so the table lists `100 B`. With 200 bytes, the rate is greater in
    only two rounds, so the table does not list `200 B`. The table also lists the workloads for which `HMB` was worse in
    every round: with 100 bytes, `HMB` always needs more CPU time for a record.
    """
    samples = []
    for number in range(5):
        samples += [run("HMB", number, 100, 110.0 + number, 1.2), run("HMB (before)", number, 100, 100.0, 1.0)]
        samples += [run("HMB", number, 200, 98.0 + number, 1.0), run("HMB (before)", number, 200, 100.0, 1.0)]
    _, summary = VIEW.tables(samples)
    rate, cpu = rows_of(summary)
    assert (rate["cells"], rate["median"], rate["lowest"]) == ("2", "1.06", "1.00")
    assert (rate["better in every round"], rate["worse in every round"]) == ("100 B", "-")
    assert (cpu["better in every round"], cpu["worse in every round"]) == ("-", "100 B")


def test_three_rounds_are_too_few_to_agree() -> None:
    samples = [run(broker, number, size, 1.0) for number in range(3) for size in (1, 2) for broker in ("HMB", "Kafka")]
    _, summary = VIEW.tables(samples)
    assert summary.rows[0] == ["", "", "cells", "median", "lowest", "highest"]
