"""Goals: the limit of a figure, and the table that compares the figures of a benchmark with their goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from .tables import Table


class FigureGoal(NamedTuple):
    """The limit of one figure. The figure is good if it is at most the limit, or at least the limit if `is_least`."""

    label: str
    limit: float
    is_least: bool = False
    digits: int = 1  # the number of digits after the decimal point in the table

    def is_reached(self, figure: float) -> bool:
        return figure >= self.limit if self.is_least else figure <= self.limit

    def row(self, figures: Sequence[float]) -> list[str]:
        """Return a row of the table: the label, the median and the range of the figures, the limit, and the verdict."""
        middle, relation = median(figures), "at least" if self.is_least else "at most"
        span = " .. ".join(f"{each:,.{self.digits}f}" for each in (min(figures), max(figures)))
        reached = "yes" if self.is_reached(middle) else "no"
        return [self.label, f"{middle:,.{self.digits}f}", span, f"{relation} {self.limit:,g}", reached]


def goal_table(title: str, goals: Mapping[str, FigureGoal], figures: Mapping[str, Sequence[float]]) -> Table:
    """Return the table of all goals whose figure was measured. `figures` contains one value for each round."""
    heading = ["figure", "median", "range", "goal", "reached"]
    return Table(title, [heading, *(goal.row(figures[name]) for name, goal in goals.items() if name in figures)])
