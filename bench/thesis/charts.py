"""Draws the two charts of the thesis, with the rates of the thesis and the rates that `hmb bench thesis` has measured.

The x axis of a chart shows the batch size or the message size. The y axis shows MB/s on the wire.

The first panel of a chart shows the rates from the bachelor thesis *Functional Kafka* (tables 10.3 and
10.5). Each other panel shows the measured rates for one release of Kafka. Each panel has four curves, one
for each scenario.

`hmb bench thesis` measures each scenario in several rounds. A point shows the median of the rounds, and a
bar shows their minimum and maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..report.charts import draw_curve, finish_panel, panels_of
from ..report.distribution import Distribution
from ..report.samples import Sample
from ..report.tables import distribution, group_by
from .cells import BATCH_SIZE_BENCHMARK, MESSAGE_SIZE_BENCHMARK, Cell, cell_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIRE_RATE = "wire_mb_per_second"
SCENARIOS = {1: "1: Kafka to Kafka", 2: "2: Kafka to HMB", 3: "3: HMB to Kafka", 4: "4: HMB to HMB"}
STYLES: dict[int, dict[str, Any]] = {
    1: {"color": "#444444", "marker": "o", "linestyle": "-"},
    2: {"color": "#0072b2", "marker": "s", "linestyle": "-"},
    # Some rates of scenarios 3 and 4 are equal, so one curve covers the other. With `zorder`, the dashed curve is drawn
    # last, and a reader sees the solid curve through its gaps.
    3: {"color": "#d55e00", "marker": "^", "linestyle": "--", "zorder": 3},
    4: {"color": "#009e73", "marker": "D", "linestyle": "-"},
}
BENCHMARKS = {"batch": BATCH_SIZE_BENCHMARK, "message": MESSAGE_SIZE_BENCHMARK}
LABELS = {"batch": "batch size (bytes), messages of 100 B", "message": "message size (bytes), batches of 12,800 B"}
# The keys are pairs (Kafka release, scenario). The values map each workload to its rates (MB/s on the network).
Rates = Mapping[tuple[str, int], Mapping[Cell, Distribution]]


def rates_of(samples: Sequence[Sample]) -> Rates:
    """Group the rates of the measured runs by the release of Kafka, the scenario and the workload.

    The result maps each pair (release, number of the scenario) to a dict. For example, ("4.3.0", 2) means scenario
    2 with Kafka 4.3.0. The inner dict maps each workload (`Cell`) to the rates in MB/s of all its runs.
    """
    groups = group_by(samples, lambda run: (str(run.parameters["generation"]), int(run.parameters["scenario"])))
    return {
        key: {cell: distribution(runs, WIRE_RATE) for cell, runs in group_by(of_key, cell_of).items()}
        for key, of_key in groups.items()
    }


def chart(benchmark: str, rates: Rates) -> Figure:
    """Draw the chart of one benchmark: the rates by batch size ("batch"), or by message size ("message").

    The first panel shows the rates that the thesis of 2015 measured. The other panels show the rates that `hmb
    bench thesis` has measured.
    """
    cells = BENCHMARKS[benchmark]
    generations = sorted({generation for generation, _ in rates if generation}) or [""]
    figure, panels = panels_of(1 + len(generations))
    for number in SCENARIOS:
        thesis = {cell: Distribution((float(cell.thesis[number - 1]),)) for cell in cells}
        _curve(panels[0], benchmark, number, thesis)
    panels[0].set_title("the thesis: two machines, 1 Gb/s, 2015")
    for panel, generation in zip(panels[1:], generations, strict=True):
        for number in SCENARIOS:
            of_scenario = rates.get((generation if number < 4 else "", number), {})
            _curve(panel, benchmark, number, {cell: of_scenario[cell] for cell in cells if cell in of_scenario})
        panel.set_title(f"Kafka {generation}, one machine" if generation else "one machine")
    for panel in panels:
        finish_panel(panel, [size_of(cell, benchmark) for cell in cells], LABELS[benchmark])
    panels[0].set_ylabel("MB/s on the wire (each panel has its own scale)")
    legend = panels[0].get_legend_handles_labels()
    figure.legend(*legend, loc="outside lower center", ncols=4, title="producer to broker")
    return figure


def _curve(panel: Axes, benchmark: str, number: int, rates: Mapping[Cell, Distribution]) -> None:
    points = {float(size_of(cell, benchmark)): rate for cell, rate in rates.items()}
    draw_curve(panel, points, label=SCENARIOS[number], **STYLES[number])


def size_of(cell: Cell, benchmark: str) -> int:
    """Return a cell's position on the x axis: its batch size or its message size (bytes)."""
    return cell.batch_bytes if benchmark == "batch" else cell.message_bytes
