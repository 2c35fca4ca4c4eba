"""Tables that show how fast HMB and Kafka are in the benchmarks of a bachelor thesis.

The benchmark repeats the measurements of *Functional Kafka*, a bachelor thesis. The tables contain measured
rates, ratios and costs, and HMB's goals.

A *scenario* is a pair of a producer and a broker. In scenario 1, the producer and the broker come from Kafka.
In scenario 4, the producer and the broker come from HMB.

For each of the scenarios 2 to 4, the tables show a *ratio*: the rate of the scenario divided by the rate of
scenario 1. Both rates come from the same round.

Each table of rates is for one release of Kafka. Scenarios 1 to 3 use this release. Scenario 4 uses only HMB, so
its rates are the same in every table. But the ratios of scenario 4 differ, because they are its rates divided by
the rates of scenario 1.

The thesis used other machines and another network. Its rates (MB/s) therefore cannot be compared with the rates
that this benchmark measures. But the ratios can be compared. A ratio of 1.5, for example, means that one
program was 1.5 times as fast as another program on the same machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..report.distribution import Distribution
from ..report.samples import Sample
from ..report.tables import Table, distribution, group_by, ratios
from ..report.view import Column
from .cells import BATCH_SIZE_BENCHMARK, MESSAGE_SIZE_BENCHMARK, Cell, cell_of

RATE = "records_per_second"
ByScenario = dict[int, list[Sample]]
COSTS = (
    Column("p50_ms", "p50, ms", spread=False, digits=0),
    Column("p95_ms", "p95, ms", spread=False, digits=0),
    Column("p99_ms", "p99, ms", spread=False, digits=0),
    Column("broker_cpu_seconds", "broker CPU, us/record", 1e6, "records", spread=False, digits=2),
    Column("client_cpu_seconds", "client CPU, us/record", 1e6, "records", spread=False, digits=2),
    Column("broker_resident_bytes", "broker, MB", 1e-6, spread=False, digits=0),
    Column("client_max_bytes", "client, MB", 1e-6, spread=False, digits=0),
)


@dataclass(frozen=True)
class ThesisGoal:
    """A goal for the ratio between the rate of one scenario and the rate of scenario 1.

    In scenario 1, the producer and the broker come from Kafka. The benchmark runs each scenario with several
    combinations of a message size and a batch size. For each combination, the ratio is the rate of the scenario
    divided by the rate of scenario 1.

    The ratio of each combination must be at least the number `every`. If the number `median` is not None, the
    median of the ratios must be at least `median`.
    """

    scenario: int
    generation: str  # the version of Kafka
    every: float
    median: float | None = None

    def __str__(self) -> str:
        return f"{self.every:.1f} in every cell" + (f", {self.median:.1f} in the median" if self.median else "")


GOALS = (
    ThesisGoal(2, "4.3.0", 1.0, 1.5),
    ThesisGoal(2, "0.8.2.2", 1.0),
    ThesisGoal(3, "4.3.0", 1.0),
    ThesisGoal(3, "0.8.2.2", 1.0),
)
GOAL_NAMES = {2: "HMB's broker", 3: "HMB's producer"}


def rates(samples: Sequence[Sample]) -> list[Table]:
    """Return one table for each release of Kafka.

    Each row shows the rates of one scenario in one cell (a message size and a batch size).
    """
    found = []
    for generation in generations(samples) or [""]:
        heading = "records/s", "MB/s", "MB/s on the wire", "over scenario 1", "in the thesis"
        rows = [["", "producer to broker", *heading]]
        for cell, scenarios in by_cell(samples, generation).items():
            name = str(cell)
            for number, runs in sorted(scenarios.items()):
                rate, ratio = distribution(runs, RATE), over_first(scenarios, number)
                speeds = [f"{speed:,.1f}" for speed in cell.rates(rate.median).values()]
                thesis = f"{cell.thesis_ratio(number):.2f}" if ratio else ""
                rows.append([name, scenario_name(runs[0]), str(rate), *speeds, str(ratio or ""), thesis])
                name = ""  # A workload has several rows. Only the first row shows the name of the workload.
        found.append(Table(f"Kafka {generation}" if generation else "HMB alone", rows))
    return found


def costs(samples: Sequence[Sample]) -> Table:
    """Return a table with the medians of the latency, the CPU time and the memory."""
    rows = [["", "producer to broker", *(column.label for column in COSTS)]]
    for cell, of_cell in group_by(samples, cell_of).items():
        name = str(cell)
        by_pair = group_by(of_cell, lambda run: (int(run.parameters["scenario"]), str(run.parameters["generation"])))
        for _, runs in sorted(by_pair.items()):
            rows.append([name, scenario_name(runs[0]), *(column.text(runs) for column in COSTS)])
            name = ""
    return Table("Latency, CPU time and resident memory of broker and producer", rows)


def goals(samples: Sequence[Sample]) -> list[Table]:
    """Return a table that compares the goals with the measured ratios and with the ratios of the thesis.

    Leave out a goal if its scenario did not run. If no goal remains, return no table.
    """
    rows = [["over scenario 1", "with Kafka", "goal", "", "cells", "lowest", "median", "the thesis: lowest, median"]]
    for goal in GOALS:
        cells = by_cell(samples, goal.generation)
        found = {cell: over_first(scenarios, goal.scenario) for cell, scenarios in cells.items()}
        medians = {cell: ratio.median for cell, ratio in found.items() if ratio}
        if not medians:
            continue
        reached = [ratio >= goal.every for ratio in medians.values()]
        met = all(reached) and median(medians.values()) >= (goal.median or 0)
        thesis = [cell.thesis_ratio(goal.scenario) for cell in medians]
        name = f"{goal.scenario}: {GOAL_NAMES[goal.scenario]}"
        figures = [f"{sum(reached)} of {len(reached)}"]
        figures += [f"{min(medians.values()):.2f}", f"{median(medians.values()):.2f}"]
        figures += [f"{min(thesis):.2f}, {median(thesis):.2f}"]
        rows.append([name, goal.generation, str(goal), "met" if met else "MISSED", *figures])
    return [Table("The goals", rows)] if rows[1:] else []


def of_the_thesis() -> list[Table]:
    """Return the tables 10.3 and 10.5 of the thesis.

    The rates (MB/s) include 28 bytes of overhead for each message.
    """
    heading = ["", "1: Kafka -> Kafka", "2: Kafka -> HMB", "3: HMB -> Kafka", "4: HMB -> HMB", "2 over 1", "3 over 1"]
    return [
        Table(
            f"The {name} size benchmark of the thesis, MB/s on the wire",
            [heading, *([str(cell), *map(str, cell.thesis), *_thesis_ratios(cell)] for cell in cells)],
        )
        for name, cells in (("batch", BATCH_SIZE_BENCHMARK), ("message", MESSAGE_SIZE_BENCHMARK))
    ]


def _thesis_ratios(cell: Cell) -> list[str]:
    return [f"{cell.thesis_ratio(scenario):.2f}" for scenario in (2, 3)]


def generations(samples: Sequence[Sample]) -> list[str]:
    """Return the releases of Kafka that occur in the samples, in the order of their first samples."""
    return [name for name in group_by(samples, lambda sample: str(sample.parameters["generation"])) if name]


def by_cell(samples: Sequence[Sample], generation: str) -> dict[Cell, ByScenario]:
    """Return measured runs, grouped by workload (`Cell`), and for each workload by scenario (1 to 4).

    Scenarios 1 to 3 use Kafka's producer, Kafka's broker, or both. For these scenarios, the result contains
    only runs with the Kafka release `generation`, for example 4.3.0. Scenario 4 uses only HMB, so the result
    contains all runs of scenario 4.
    """
    chosen = [sample for sample in samples if sample.parameters["generation"] in (generation, "")]
    return {
        cell: group_by(runs, lambda run: int(run.parameters["scenario"]))
        for cell, runs in group_by(chosen, cell_of).items()
    }


def over_first(scenarios: ByScenario, number: int) -> Distribution | None:
    """Return the ratio of each round: the rate of the scenario `number`, divided by the rate of scenario 1.

    Return None if `number` is 1, or if one of the two scenarios did not run.
    """
    if number == 1:
        return None
    return ratios(scenarios.get(number, []), scenarios.get(1, []), lambda run: run.figures[RATE])


def scenario_name(run: Sample) -> str:
    return f"{run.parameters['scenario']}: {run.client} -> {run.broker}"
