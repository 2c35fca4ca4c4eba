"""Goals: the limits for the measured values of a benchmark, and a table that compares the values with the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from .tables import Table


class FigureGoal(NamedTuple):
    """A limit for one measured value: a minimum if `is_least` is true, and otherwise a maximum."""

    label: str
    limit: float
    is_least: bool = False
    digits: int = 1  # the number of digits after the decimal point in the table

    def is_reached(self, figure: float) -> bool:
        return figure >= self.limit if self.is_least else figure <= self.limit

    def row(self, figures: Sequence[float]) -> list[str]:
        """Return the row of this goal in the table. `figures` contains the measured values.

        The row contains the label, the median, the range from the smallest to the greatest value, and the limit. The
        last column is "yes" if the median is within the limit, or "no" otherwise.
        """
        middle, relation = median(figures), "at least" if self.is_least else "at most"
        span = " .. ".join(f"{each:,.{self.digits}f}" for each in (min(figures), max(figures)))
        reached = "yes" if self.is_reached(middle) else "no"
        return [self.label, f"{middle:,.{self.digits}f}", span, f"{relation} {self.limit:,g}", reached]


def goal_table(title: str, goals: Mapping[str, FigureGoal], figures: Mapping[str, Sequence[float]]) -> Table:
    """Return a table that compares measured values with their goals.

    `figures` maps the name of each measurement to its values. The table contains only goals that have values.
    """
    heading = ["figure", "median", "range", "goal", "reached"]
    return Table(title, [heading, *(goal.row(figures[name]) for name, goal in goals.items() if name in figures)])
