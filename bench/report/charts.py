"""Draws charts of benchmark results: a chart with dots, and a chart with curves.

`dots` draws the usual chart. The chart has one panel for each measured quantity, for example records/s. Each
row of a panel shows one task of the benchmark, for example to send messages of 100 B. A row has one dot for
each program that did the task, for example HMB and Kafka. The dot shows the median of all rounds. The bar
through the dot goes from the minimum to the maximum of the rounds:
    100 B, batch 195    |      -o-   -x-
    100 B, batch 1387   |              -o--   -x-
                        +----------------------------- records/s

`curves` draws one curve for each measured quantity, for example a latency. The x axis shows how large the task
was, for example the number of connections. Quantities with the same unit share a panel.

Charts need matplotlib: `pip install 'hmb[docs]'`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .distribution import Distribution
from .samples import Sample
from .tables import group_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .view import Column, SampleView

COLORS = ("#0072b2", "#444444", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999933")
MARKERS = "osD^vP*X"
LOGARITHMIC_FROM = 20.0  # A panel has a logarithmic axis if its largest value is more than 20 times the smallest.


def dots(view: SampleView, title: str, samples: Sequence[Sample]) -> Figure:
    """Draw a chart in which dots show measured values and, in some charts, ratios of these values.

    A ratio compares two brokers or clients in the same task and round. For example, HMB sends 200,000 records/s and
    Kafka sends 100,000 records/s, so the ratio is 2. The chart has ratios only if it shows several tasks, and the
    samples contain a broker or client to compare with.

    Without ratios, the chart has one panel for each measured quantity. With ratios, it leaves out all quantities
    whose `Column.compare` is False. Each remaining quantity has two panels: values and ratios.

    Ratios are useful if two tasks have very different rates, for example 1,000,000 records/s and 10,000 records/s.
    On one axis for both rates, a difference of 1,000 records/s is hard to see.
    """
    cells = view.runs(samples)
    columns = [each for each in view.columns if any(each.key in run.figures for run in samples)]
    compared = [each for each in columns if each.compare]
    reference = view.reference_of(cells) if len(cells) > 1 and compared else None
    names = list(dict.fromkeys(name for contestants in cells.values() for name in contestants))
    count = len(columns) if reference is None else 2 * len(compared)
    figure, panels = panels_of(count, height=1.6 + 0.28 * len(cells) * len(names))
    rest = iter(panels)
    for column in columns if reference is None else compared:
        values = [
            {name: Distribution(tuple(map(column.value, runs))) for name, runs in each.items() if column.measured(runs)}
            for each in cells.values()
        ]
        _draw_dots(next(rest), column.label, names, values)
        if reference is not None:
            over = [
                {name: ratio for name, runs in each.items() if (ratio := view.ratio(column, each, name, reference))}
                for each in cells.values()
            ]
            panel = next(rest)
            _draw_dots(panel, f"{column.label}, over {reference}", names, over)
            panel.axvline(1, color="#444444", linewidth=0.8)
    panels[0].set_yticks(range(len(cells)), list(cells))
    figure.suptitle(title, fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw_dots(panel: Axes, label: str, names: Sequence[str], cells: Sequence[Mapping[str, Distribution]]) -> None:
    """Draw the dots of one panel. Dots for the same task are drawn one below the other.

    `names` are the compared brokers or clients, for example HMB and Kafka. `cells` contains one mapping for each
    task. A mapping maps a name to the values that were measured for this broker or client.
    """
    for number, name in enumerate(names):
        shift = (number - (len(names) - 1) / 2) * 0.8 / len(names)
        points = {cell + shift: values[name] for cell, values in enumerate(cells) if name in values}
        # There are only eight colors, so the ninth broker or client gets the first color again. The summand `number //
        # len(COLORS)` gives it a different marker (symbol) than the first one.
        marker = MARKERS[(number + number // len(COLORS)) % len(MARKERS)]
        style: dict[str, Any] = {"color": COLORS[number % len(COLORS)], "marker": marker}
        medians = [each.median for each in points.values()]
        panel.errorbar(
            medians, list(points), xerr=_ranges(points), capsize=2, label=name, linestyle="none", **style
        )
    panel.set_xlabel(label)
    panel.set_ylim(len(cells) - 0.5, -0.5)
    panel.set_yticks(range(len(cells)), [""] * len(cells))
    smallest, largest = panel.dataLim.x0, panel.dataLim.x1
    if 0 < smallest * LOGARITHMIC_FROM < largest:
        panel.set_xscale("log")
    elif largest > 0:
        panel.set_xlim(0, 1.08 * largest)
        panel.xaxis.set_major_formatter("{x:,.10g}")
        panel.locator_params(axis="x", nbins=5)
    panel.grid(alpha=0.3)


def curves(view: SampleView, title: str, samples: Sequence[Sample]) -> Figure:
    """Draw a chart with curves. The chart has one panel for each unit, for example ms.

    A panel contains one curve for each column of `view` that has this unit. The function `view.x` returns the
    position of a sample on the x axis.
    """
    x = view.x
    assert x is not None
    columns = [each for each in view.columns if any(each.key in run.figures for run in samples)]
    units = list(dict.fromkeys(_unit(each) for each in columns))
    figure, panels = panels_of(len(units))
    for panel, unit in zip(panels, units, strict=True):
        of_unit = [each for each in columns if _unit(each) == unit]
        for number, column in enumerate(of_unit):
            sizes = {size: Distribution(tuple(map(column.value, runs))) for size, runs in group_by(samples, x).items()}
            draw_curve(panel, sizes, label=_name(column), color=COLORS[number], marker=MARKERS[number])
        finish_panel(panel, list(dict.fromkeys(map(x, samples))), view.x_label(samples[0]))
        panel.set_ylabel(unit)
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(of_unit), fontsize="small", frameon=False)
    figure.suptitle(title, fontsize="medium")
    return figure


def _name(column: Column) -> str:
    """Return the label of a column without its unit. For example, the name of "append, us" is "append"."""
    return column.label.rpartition(", ")[0]


def _unit(column: Column) -> str:
    return column.label.rpartition(", ")[2]


def panels_of(count: int, height: float = 4.2) -> tuple[Figure, Sequence[Axes]]:
    """Return a new figure with `count` panels side by side. `height` is in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * count, height), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False)[0]


def draw_curve(panel: Axes, points: Mapping[float, Distribution], **style: Any) -> None:
    """Draw a curve through the medians of measured values. Vertical bars show the ranges of the values.

    `points` maps each position on the x axis, for example 100 connections, to the values that were measured there.
    At this position, the bar goes from the smallest value to the largest value.
    """
    if points:
        medians = [each.median for each in points.values()]
        panel.errorbar(list(points), medians, yerr=_ranges(points), capsize=2, **style)


def _ranges(points: Mapping[float, Distribution]) -> list[list[float]]:
    """Return two lists with a number for each point: median minus minimum, and maximum minus median."""
    return [
        [each.median - each.minimum for each in points.values()],
        [each.maximum - each.median for each in points.values()],
    ]


def finish_panel(panel: Axes, sizes: Sequence[float], label: str) -> None:
    """Make the x axis logarithmic, label only the measured sizes, and start the y axis at 0."""
    from matplotlib.ticker import NullLocator

    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], fontsize="small")
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_ylim(0, 1.08 * panel.dataLim.y1)
    panel.yaxis.set_major_formatter("{x:,.10g}")
    panel.set_xlabel(label)
    panel.grid(alpha=0.3)


def name_machine(figure: Figure, machine: str) -> None:
    """Write the name of the machine below the title, so that a reader knows on which machine the benchmark ran."""
    figure.suptitle("\n".join(filter(None, (figure.get_suptitle(), machine))), fontsize="medium")
