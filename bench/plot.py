"""The thesis' two charts, with one's own numbers beside the thesis'; and curves of what grows.

    hmb bench plot hmb-bench/thesis-20261121-200000.json            # two charts, each as SVG and as PNG
    hmb bench plot hmb-bench/growth-*.json --to charts

A chart of the thesis has MB/s on the wire over the size of a batch, or of a message, a line for each of the four
scenarios; the first panel shows the thesis' own figures (tables 10.3 and 10.5), the others the runs of a file by
generation of Kafka: the median, with a bar from the least to the most.  Needs matplotlib: pip install 'hmb[docs]'.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from .cells import BATCH_SIZE_BENCHMARK, MESSAGE_SIZE_BENCHMARK, Cell
from .suite import complain

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
Runs = Mapping[tuple[str, int, int, int], list[float]]  # (generation, scenario, message, batch) -> MB/s on the wire


def read(path: Path) -> dict[str, Any]:
    """A file of samples.  Raises OSError, ValueError."""
    document = json.loads(path.read_text())
    if not isinstance(document, dict) or "samples" not in document:
        raise ValueError(f"{path} is no file of samples, as `hmb bench` writes them")
    return document


def runs_of(samples: Iterable[Mapping[str, Any]]) -> Runs:
    runs: dict[tuple[str, int, int, int], list[float]] = {}
    for sample in samples:
        told = sample["parameters"]
        key = (told["generation"], told["scenario"], told["message_bytes"], told["batch_bytes"])
        runs.setdefault(key, []).append(sample["figures"]["wire_mb_per_second"])
    return runs


def chart(kind: str, runs: Runs) -> Figure:
    """One of the thesis' benchmarks: its panel, and one for each generation that was run."""
    from matplotlib.figure import Figure

    cells = BENCHMARKS[kind]
    generations = sorted({generation for generation, *_ in runs if generation})
    figure = Figure(figsize=(4.6 * (1 + len(generations)), 4.2), layout="constrained")
    panels = figure.subplots(1, 1 + len(generations), squeeze=False)[0]
    for number in SCENARIOS:
        _line(panels[0], cells, kind, number, [[float(cell.thesis[number - 1])] for cell in cells])
    panels[0].set_title("the thesis: Kafka 0.8.2, 1 Gb/s Ethernet, 2015")
    for panel, generation in zip(panels[1:], generations, strict=True):
        for number in SCENARIOS:
            rates = [
                runs.get((generation if number < 4 else "", number, cell.message, cell.batch), []) for cell in cells
            ]
            _line(panel, cells, kind, number, rates)
        panel.set_title(f"Kafka {generation}, one machine, loopback")
    for panel in panels:
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_xlabel(LABELS[kind])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("MB/s on the wire")
    panels[-1].legend(title="producer to broker", fontsize="small")
    return figure


def _line(panel: Axes, cells: Sequence[Cell], kind: str, number: int, rates: Sequence[Sequence[float]]) -> None:
    there = [(getattr(cell, kind), each) for cell, each in zip(cells, rates, strict=True) if each]
    if there:
        middle = [median(each) for _, each in there]
        below = [centre - min(each) for centre, (_, each) in zip(middle, there, strict=True)]
        above = [max(each) - centre for centre, (_, each) in zip(middle, there, strict=True)]
        sizes = [size for size, _ in there]
        panel.errorbar(sizes, middle, yerr=[below, above], capsize=2, label=SCENARIOS[number], **STYLES[number])


def curves(samples: Sequence[Mapping[str, Any]]) -> Figure:
    """What grows: a panel for each thing that was made larger (growth.py)."""
    from matplotlib.figure import Figure

    subjects = list(dict.fromkeys(sample["parameters"]["of"] for sample in samples))
    figure = Figure(figsize=(4.6 * len(subjects), 4.0), layout="constrained")
    for panel, subject in zip(figure.subplots(1, len(subjects), squeeze=False)[0], subjects, strict=True):
        of_subject = [sample for sample in samples if sample["parameters"]["of"] == subject]
        for figure_name in of_subject[0]["figures"]:
            points: dict[float, list[float]] = {}
            for sample in of_subject:
                points.setdefault(sample["parameters"]["size"], []).append(sample["figures"][figure_name])
            panel.plot(list(points), [median(each) for each in points.values()], marker="o", label=figure_name)
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_title(subject)
        panel.set_xlabel(of_subject[0]["parameters"]["unit"])
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    return figure


def figures_of(document: Mapping[str, Any]) -> dict[str, Figure]:
    """The charts that can be drawn of a file, by name."""
    samples = document["samples"]
    suites = {sample["suite"] for sample in samples}
    if suites == {"thesis"}:
        runs = runs_of(samples)
        return {f"thesis-{kind}-size": chart(kind, runs) for kind in BENCHMARKS}
    if suites == {"growth"}:
        return {"growth": curves(samples)}
    raise ValueError(f"nothing is drawn of {', '.join(sorted(suites)) or 'no samples'}: of thesis and growth only")


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw the thesis' charts with one's own numbers.")
    parser.add_argument("files", type=Path, nargs="+", help="that `hmb bench thesis` or `growth` wrote")
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
