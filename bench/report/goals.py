"""Goals: limits for the figures of a benchmark, and the table that compares the figures with their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from .tables import Table


class FigureGoal(NamedTuple):
    """A limit for one figure: a lower limit if `is_least` is true, or otherwise an upper limit."""

    label: str
    limit: float
    is_least: bool = False
    digits: int = 1  # the number of digits after the decimal point in the table

    def is_reached(self, figure: float) -> bool:
        return figure >= self.limit if self.is_least else figure <= self.limit

    def row(self, figures: Sequence[float]) -> list[str]:
        """Return a row of the table: label, median, range, limit, and whether the median reaches the goal."""
        middle, relation = median(figures), "at least" if self.is_least else "at most"
        span = " .. ".join(f"{each:,.{self.digits}f}" for each in (min(figures), max(figures)))
        reached = "yes" if self.is_reached(middle) else "no"
        return [self.label, f"{middle:,.{self.digits}f}", span, f"{relation} {self.limit:,g}", reached]


def goal_table(title: str, goals: Mapping[str, FigureGoal], figures: Mapping[str, Sequence[float]]) -> Table:
    """Return a table that compares measured figures with their goals. `figures` contains the values of each figure."""
    heading = ["figure", "median", "range", "goal", "reached"]
    return Table(title, [heading, *(goal.row(figures[name]) for name, goal in goals.items() if name in figures)])
