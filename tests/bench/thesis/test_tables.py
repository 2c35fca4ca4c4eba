"""Tests of tables that compare measured ratios with the ratios in the thesis, and show which goals HMB reaches."""

from __future__ import annotations

from hmb.bench.report.samples import Sample
from hmb.bench.report.tables import Table
from hmb.bench.thesis import tables
from hmb.bench.thesis.cells import CELLS
from hmb.bench.thesis.suite import VIEW


def of_thesis(scenario: int, generation: str, position: int, number: int, rate: float) -> Sample:
    cell = CELLS[position]
    figures = {"records_per_second": rate, "p50_ms": 1.0, "p99_ms": 2.0, "broker_cpu_seconds": 0.5}
    broker = f"Kafka {generation}" if scenario in (1, 3) else "HMB"
    parameters = {"scenario": scenario, "generation": generation, **cell.parameters, "records": 1_000}
    return Sample("thesis", broker, "HMB", number, parameters, figures)


RUNS = [
    of_thesis(scenario, "" if scenario == 4 else "4.3.0", position, number, rate * (number + 1))
    for position in (0, 5)
    for number in range(3)
    for scenario, rate in ((1, 100_000.0), (2, 200_000.0), (3, 90_000.0 + 50_000.0 * position), (4, 300_000.0))
]


def rows_of(table: Table) -> list[dict[str, str]]:
    heading, *rows = table.rows
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_the_thesis_has_its_ratios_in_the_same_table() -> None:
    (of_generation,) = tables.rates(RUNS)
    rows = rows_of(of_generation)
    assert of_generation.title == "Kafka 4.3.0"
    assert [row["producer to broker"] for row in rows[:4]] == [
        "1: HMB -> Kafka 4.3.0",
        "2: HMB -> HMB",
        "3: HMB -> Kafka 4.3.0",
        "4: HMB -> HMB",
    ]
    assert [row["in the thesis"] for row in rows[:4]] == ["", f"{8 / 9:.2f}", f"{10 / 9:.2f}", "1.00"]
    assert rows[1]["over scenario 1"] == "2.00 (2.00 .. 2.00)"
    assert rows[1]["MB/s"] == "40.0" and rows[1]["MB/s on the wire"] == "51.2"


def test_a_goal_is_met_if_every_cell_reaches_it() -> None:
    (table,) = tables.goals(RUNS)
    two, three = rows_of(table)
    assert (two[""], two["cells"], two["lowest"]) == ("met", "2 of 2", "2.00")
    assert (three[""], three["cells"], three["lowest"]) == ("MISSED", "1 of 2", "0.90")
    assert two["the thesis: lowest, median"] == f"{50 / 85:.2f}, {(8 / 9 + 50 / 85) / 2:.2f}"


def test_pairs_that_did_not_run_are_left_out() -> None:
    alone = [run for run in RUNS if run.parameters["scenario"] == 4]
    assert VIEW.tables(alone)[0].title == "HMB alone"
    assert tables.goals(alone) == []
    assert all(not row["over scenario 1"] for row in rows_of(tables.rates(alone)[0]))


def test_the_thesis_own_figures_are_those_of_the_cells() -> None:
    batch, message = tables.of_the_thesis()
    assert rows_of(batch)[4]["1: Kafka -> Kafka"] == "98" and rows_of(batch)[4]["3 over 1"] == "0.16"
    assert [len(table.rows) for table in (batch, message)] == [6, 6]
