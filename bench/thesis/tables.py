"""What is made of the runs of the thesis' benchmarks: rates and ratios beside the thesis' own, costs, goals.

Everything is over scenario 1, Kafka's producer to Kafka's broker, of the same generation of Kafka and the same turn;
scenario 4, HMB's producer to HMB's broker, is no generation's, and so is compared with each.  The thesis has its ratios
beside ours: the networks differ, so its MB/s do not compare, but who is faster than whom does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median as middle

from ..report.samples import Sample
from ..report.tables import Table, by, by_parameters, median, over, spread, told
from ..report.turns import Spread
from .cells import BATCH_SIZE_BENCHMARK, CELLS, MESSAGE_SIZE_BENCHMARK, Cell

RATE = "records_per_second"
ByScenario = dict[int, list[Sample]]


@dataclass(frozen=True)
class Goal:
    """A scenario over scenario 1, with one generation of Kafka: at least so much in every cell, and in the median."""

    scenario: int
    generation: str
    every: float
    median: float | None = None

    def __str__(self) -> str:
        return f"{self.every:.1f} in every cell" + (f", {self.median:.1f} in the median" if self.median else "")


GOALS = (
    Goal(2, "4.3.0", 1.0, 1.5),
    Goal(2, "0.8.2.2", 1.0),
    Goal(3, "4.3.0", 1.0),
    Goal(3, "0.8.2.2", 1.0),
)
SCENARIOS = {2: "HMB's broker", 3: "HMB's producer", 4: "both HMB's"}


def tables(samples: Sequence[Sample]) -> list[Table]:
    """All of them: what was to be reached first."""
    return [*goals(samples), *rates(samples), costs(samples)]


def rates(samples: Sequence[Sample]) -> list[Table]:
    """For each generation the rates, by cell and scenario."""
    found = []
    for generation in generations(samples) or [""]:
        heading = "records/s", "MB/s", "MB/s on the wire", "over scenario 1", "in the thesis"
        rows = [["", "producer to broker", *heading]]
        for cell, scenarios in by_cell(samples, generation).items():
            name = str(cell)
            for number, runs in sorted(scenarios.items()):
                rate, ratio = spread(runs, RATE), over_first(scenarios, number)
                speeds = f"{cell.payload_rate(rate.median):,.1f}", f"{cell.wire_rate(rate.median):,.1f}"
                then = f"{cell.thesis[number - 1] / cell.thesis[0]:.2f}" if ratio else ""
                rows.append([name, scenario_name(runs[0]), str(rate), *speeds, told(ratio), then])
                name = ""  # once a cell
        found.append(Table(f"Kafka {generation}" if generation else "HMB alone", rows))
    return found


def costs(samples: Sequence[Sample]) -> Table:
    """Latency, CPU time and memory; medians."""
    rows = [["", "producer to broker", "p50 ms", "p95 ms", "p99 ms",
             "broker us/record", "client us/record", "broker MB", "client MB"]]  # fmt: skip
    for cell, of_cell in by(samples, cell_of).items():
        name = str(cell)
        for _, runs in sorted(by_parameters(of_cell, "scenario", "generation").items()):
            latency = [median(runs, name, form=",.0f") for name in ("p50_ms", "p95_ms", "p99_ms")]
            records = float(runs[0].parameters["records"])
            cpu = [median(runs, f"{who}_cpu_seconds", records / 1e6, ",.2f") for who in ("broker", "client")]
            memory = [median(runs, name, 1e6, ",.0f") for name in ("broker_resident_bytes", "client_max_bytes")]
            rows.append([name, scenario_name(runs[0]), *latency, *cpu, *memory])
            name = ""  # once a cell
    return Table("Latency, CPU time and resident memory of broker and producer", rows)


def goals(samples: Sequence[Sample]) -> list[Table]:
    """Each goal, as far as its scenarios ran, and how the thesis' figures would have stood."""
    rows = [["over scenario 1", "with Kafka", "goal", "", "cells", "least", "median", "the thesis' least, median"]]
    for goal in GOALS:
        cells = by_cell(samples, goal.generation)
        found = {cell: over_first(scenarios, goal.scenario) for cell, scenarios in cells.items()}
        ratios = {cell: ratio.median for cell, ratio in found.items() if ratio}
        if not ratios:
            continue
        reached = [ratio >= goal.every for ratio in ratios.values()]
        met = all(reached) and middle(ratios.values()) >= (goal.median or 0)
        then = [cell.thesis[goal.scenario - 1] / cell.thesis[0] for cell in ratios]
        what = [f"{goal.scenario}: {SCENARIOS[goal.scenario]}", goal.generation, str(goal), "met" if met else "MISSED"]
        figures = [f"{sum(reached)} of {len(reached)}", f"{min(ratios.values()):.2f}", f"{middle(ratios.values()):.2f}"]
        rows.append([*what, *figures, f"{min(then):.2f}, {middle(then):.2f}"])
    return [Table("The goals", rows)] if len(rows) > 1 else []


def of_the_thesis() -> list[Table]:
    """What the thesis measured: its tables 10.3 and 10.5, MB/s on the wire."""
    heading = ["", "1: Kafka -> Kafka", "2: Kafka -> HMB", "3: HMB -> Kafka", "4: HMB -> HMB", "2 over 1", "3 over 1"]
    return [
        Table(title, [heading, *([str(cell), *map(str, cell.thesis), *_ratios(cell)] for cell in cells)])
        for title, cells in (
            ("The batch size benchmark of the thesis, MB/s on the wire", BATCH_SIZE_BENCHMARK),
            ("The message size benchmark of the thesis, MB/s on the wire", MESSAGE_SIZE_BENCHMARK),
        )
    ]


def _ratios(cell: Cell) -> list[str]:
    return [f"{cell.thesis[number - 1] / cell.thesis[0]:.2f}" for number in (2, 3)]


def generations(samples: Sequence[Sample]) -> list[str]:
    """Of Kafka, as they come first."""
    return [name for name in by(samples, lambda sample: str(sample.parameters["generation"])) if name]


def by_cell(samples: Sequence[Sample], generation: str) -> dict[Cell, ByScenario]:
    """Each cell's runs by scenario: those with that generation of Kafka, and those without any."""
    chosen = [sample for sample in samples if sample.parameters["generation"] in (generation, "")]
    return {cell: by(runs, lambda run: int(run.parameters["scenario"])) for cell, runs in by(chosen, cell_of).items()}


def over_first(scenarios: ByScenario, number: int) -> Spread | None:
    """A scenario's rate over scenario 1's; None for that one itself, and where it did not run."""
    return None if number == 1 else over(scenarios.get(number, []), scenarios.get(1, []), RATE)


def cell_of(sample: Sample) -> Cell:
    """The thesis' cell that a run was of."""
    sizes = sample.parameters["message_bytes"], sample.parameters["batch_bytes"]
    return next(cell for cell in CELLS if (cell.message, cell.batch) == sizes)


def scenario_name(run: Sample) -> str:
    return f"{run.parameters['scenario']}: {run.client} -> {run.broker}"
