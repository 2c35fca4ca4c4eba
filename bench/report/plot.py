"""The thesis' two charts, with one's own numbers beside the thesis'; curves of what grows; the layouts of threads.

    hmb bench plot hmb-bench/thesis-20261121-200000.json            # two charts, each as SVG and as PNG
    hmb bench plot hmb-bench/growth-*.json hmb-bench/threads-*.json --to charts

A chart of the thesis has MB/s on the wire over the size of a batch, or of a message, a line for each of the four
scenarios; the first panel shows the thesis' own figures (tables 10.3 and 10.5), the others the runs of a file by
generation of Kafka.  A point is a median, its bar goes from the least to the most.  Needs matplotlib: pip install
'hmb[docs]'.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..scenarios.growth import LABELS as LABELS_OF_GROWTH
from ..scenarios.growth import SUBJECTS
from ..scenarios.threads import RATE
from ..suite import complain
from ..thesis.cells import BATCH_SIZE_BENCHMARK, MESSAGE_SIZE_BENCHMARK, Cell
from ..thesis.tables import cell_of
from .samples import Sample, read, samples_of
from .tables import by, by_parameters, spread
from .turns import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCENARIOS = {1: "1: Kafka to Kafka", 2: "2: Kafka to HMB", 3: "3: HMB to Kafka", 4: "4: HMB to HMB"}
STYLES: dict[int, dict[str, Any]] = {
    1: {"color": "#444444", "marker": "o", "linestyle": "-"},
    2: {"color": "#0072b2", "marker": "s", "linestyle": "-"},
    3: {"color": "#d55e00", "marker": "^", "linestyle": "--"},
    4: {"color": "#009e73", "marker": "D", "linestyle": "-"},
}
BENCHMARKS = {"batch": BATCH_SIZE_BENCHMARK, "message": MESSAGE_SIZE_BENCHMARK}
LABELS = {"batch": "batch size (bytes), messages of 100 B", "message": "message size (bytes), batches of 12,800 B"}
Runs = Mapping[tuple[str, int], Mapping[Cell, Spread]]  # by generation and scenario: MB/s on the wire


def runs_of(samples: Sequence[Sample]) -> Runs:
    groups = by(samples, lambda run: (str(run.parameters["generation"]), int(run.parameters["scenario"])))
    return {
        key: {cell: spread(each, "wire_mb_per_second") for cell, each in by(of_key, cell_of).items()}
        for key, of_key in groups.items()
    }


def thesis_chart(kind: str, runs: Runs) -> Figure:
    """One of the thesis' benchmarks: its panel, and one for each generation that was run."""
    cells = BENCHMARKS[kind]
    generations = sorted({generation for generation, _ in runs if generation}) or [""]
    figure, panels = _panels(1 + len(generations))
    for number in SCENARIOS:
        _line(panels[0], kind, number, {cell: Spread((float(cell.thesis[number - 1]),)) for cell in cells})
    panels[0].set_title("the thesis: two machines, 1 Gb/s, 2015")
    for panel, generation in zip(panels[1:], generations, strict=True):
        for number in SCENARIOS:
            rates = runs.get((generation if number < 4 else "", number), {})
            _line(panel, kind, number, {cell: rates[cell] for cell in cells if cell in rates})
        panel.set_title(f"Kafka {generation}, one machine" if generation else "one machine")
    for panel in panels:
        _axes(panel, [getattr(cell, kind) for cell in cells], LABELS[kind])
    panels[0].set_ylabel("MB/s on the wire")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, title="producer to broker"
    )
    return figure


def _line(panel: Axes, kind: str, number: int, rates: Mapping[Cell, Spread]) -> None:
    points = {getattr(cell, kind): rate for cell, rate in rates.items()}
    _points(panel, points, label=SCENARIOS[number], **STYLES[number])


def growth_chart(samples: Sequence[Sample]) -> Figure:
    """What grows with one thing that was made larger (growth.py): a panel for each unit."""
    units = [LABELS_OF_GROWTH[name][1] for name in samples[0].figures]
    figure, panels = _panels(len(set(units)))
    for panel, unit in zip(panels, dict.fromkeys(units), strict=True):
        names = [name for name in samples[0].figures if LABELS_OF_GROWTH[name][1] == unit]
        sizes = by(samples, lambda run: float(run.parameters["size"]))
        for name in names:
            points = {size: spread(runs, name) for size, runs in sizes.items()}
            _points(panel, points, label=LABELS_OF_GROWTH[name][0], marker="o")
        _axes(panel, list(sizes), str(samples[0].parameters["unit"]))
        panel.set_ylabel(unit)
        panel.set_title("" if len(names) > 1 else LABELS_OF_GROWTH[names[0]][0])
        if len(names) > 1:
            panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(names), fontsize="small", frameon=False)
    figure.suptitle(SUBJECTS[str(samples[0].parameters["of"])])
    return figure


def threads_chart(samples: Sequence[Sample]) -> Figure:
    """The staged layout over its handlers (threads.py), and as a band what a thread a connection does."""
    groups = by_parameters(samples, "message_bytes", "batch_bytes", "producers")
    figure, panels = _panels(len(groups))
    for panel, ((size, batch, producers), runs) in zip(panels, groups.items(), strict=True):
        rates = {count: spread(each, RATE) for count, each in by(runs, lambda run: run.parameters["handlers"]).items()}
        alone = rates.pop(0, None)
        if alone:
            panel.axhspan(alone.least, alone.most, color="#0072b2", alpha=0.2, linewidth=0)
            panel.axhline(alone.median, color="#0072b2", label="a thread a connection")
        _points(panel, {float(count): rate for count, rate in sorted(rates.items())},
                label="staged", color="#d55e00", marker="s")  # fmt: skip
        _axes(panel, [float(count) for count in sorted(rates)], "API handlers (threads)")
        panel.set_title(f"{size} B, batch {batch}; {producers} producer{'s' * (producers != 1)}")
    panels[0].set_ylabel("records/s")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _panels(count: int) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * count, 4.2), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False)[0]


def _points(panel: Axes, points: Mapping[float, Spread], **style: Any) -> None:
    if not points:
        return
    middle = [each.median for each in points.values()]
    below = [each.median - each.least for each in points.values()]
    above = [each.most - each.median for each in points.values()]
    panel.errorbar(list(points), middle, yerr=[below, above], capsize=2, **style)


def _axes(panel: Axes, sizes: Sequence[float], label: str) -> None:
    """Sizes on a logarithmic axis, those that were measured and no others; rates from 0 on."""
    from matplotlib.ticker import NullLocator

    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], fontsize="small")
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_ylim(0, 1.08 * panel.dataLim.y1)
    panel.yaxis.set_major_formatter("{x:,.10g}")
    panel.set_xlabel(label)
    panel.grid(alpha=0.3)


def figures_of(document: Mapping[str, Any]) -> dict[str, Figure]:
    """The charts that can be drawn of a file, by name."""
    samples = samples_of(document)
    suite = samples[0].suite
    if suite == "thesis":
        runs = runs_of(samples)
        return {f"thesis-{kind}-size": thesis_chart(kind, runs) for kind in BENCHMARKS}
    if suite == "growth":
        return {f"growth-{of}": growth_chart(runs) for (of,), runs in by_parameters(samples, "of").items()}
    if suite == "threads":
        return {"threads": threads_chart(samples)}
    raise ValueError(f"nothing is drawn of {suite}: of thesis, growth and threads only")


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw the thesis' charts with one's own numbers.")
    parser.add_argument("files", type=Path, nargs="+", help="that `hmb bench thesis`, `growth` or `threads` wrote")
    parser.add_argument("--to", type=Path, default=Path(), help="the folder for the pictures; default: this one")
    options = parser.parse_args()
    try:
        options.to.mkdir(parents=True, exist_ok=True)
        for path in options.files:
            for name, figure in figures_of(read(path)).items():
                for kind in ("svg", "png"):
                    figure.savefig(options.to / f"{name}.{kind}", dpi=120)
                    print(options.to / f"{name}.{kind}")
    except ModuleNotFoundError as missing:
        print(f"hmb: {missing.name} is not installed: pip install 'hmb[docs]'", file=sys.stderr)
        return 1
    except (OSError, ValueError) as problem:
        return complain(problem)
    return 0


if __name__ == "__main__":
    sys.exit(main())
