"""Charts of samples: dots for cells and contestants, curves over a size.

`dots` draws the usual chart. Each column of the view has a panel, each cell a line of the panel, and each contestant a
dot in it. A bar through the dot goes from the minimum to the maximum of the rounds::

    100 B, batch 195    |      -o-   -x-
    100 B, batch 1387   |              -o--   -x-
                        +----------------------------- records/s

`curves` draws a size on the x axis, for example the number of connections, and a curve for each figure. Columns with
the same unit share a panel.

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
LOGARITHMIC_FROM = 20.0  # A panel is logarithmic if its largest value is this many times its smallest one.


def dots(view: SampleView, title: str, samples: Sequence[Sample]) -> Figure:
    """Draw a panel for each column that the samples have.

    If the samples have several cells and a reference, only columns that are compared have panels. Each of them has a
    second panel for the ratios, because cells differ so much that small differences between contestants would be
    invisible.
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
    """Draw the values of all cells. The contestants of a cell are drawn one below the other."""
    for number, name in enumerate(names):
        shift = (number - (len(names) - 1) / 2) * 0.8 / len(names)
        points = {cell + shift: values[name] for cell, values in enumerate(cells) if name in values}
        # From the ninth contestant on, a color has another marker than the first time.
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
    """Draw a panel for each unit, with a curve over the view's `x` for each column of that unit."""
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
    """Return the part of the label before the unit: "append" of "append, us"."""
    return column.label.rpartition(", ")[0]


def _unit(column: Column) -> str:
    return column.label.rpartition(", ")[2]


def panels_of(count: int, height: float = 4.2) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with panels side by side; the height is in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * count, height), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False)[0]


def draw_curve(panel: Axes, points: Mapping[float, Distribution], **style: Any) -> None:
    """Draw a curve through the medians, with a bar from the minimum to the maximum at each size."""
    if points:
        medians = [each.median for each in points.values()]
        panel.errorbar(list(points), medians, yerr=_ranges(points), capsize=2, **style)


def _ranges(points: Mapping[float, Distribution]) -> list[list[float]]:
    """Return the distances from the medians to the minima and to the maxima, as matplotlib expects them."""
    return [
        [each.median - each.minimum for each in points.values()],
        [each.maximum - each.median for each in points.values()],
    ]


def finish_panel(panel: Axes, sizes: Sequence[float], label: str) -> None:
    """Put only the measured sizes on a logarithmic x axis, and start the y axis at 0."""
    from matplotlib.ticker import NullLocator

    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], fontsize="small")
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_ylim(0, 1.08 * panel.dataLim.y1)
    panel.yaxis.set_major_formatter("{x:,.10g}")
    panel.set_xlabel(label)
    panel.grid(alpha=0.3)


def name_machine(figure: Figure, machine: str) -> None:
    """Write the machine below the title, so that a picture alone shows where its runs took place."""
    figure.suptitle("\n".join(filter(None, (figure.get_suptitle(), machine))), fontsize="medium")
