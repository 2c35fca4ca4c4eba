"""Several values of one figure, and percentiles of latencies.

A benchmark repeats each run, because the speed of a shared machine changes all the time. A table then shows the median
of the values with their minimum and maximum, for example `1.03 (0.98 .. 1.07)`. The median ignores one bad run, and the
range shows how much a reader can trust it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Distribution:
    """The values that one figure had in several runs, at least one value. It knows their median and range."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def minimum(self) -> float:
        return min(self.values)

    @property
    def maximum(self) -> float:
        return max(self.values)

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.minimum)} .. {number(self.maximum)})"


def number(value: float) -> str:
    """Return a value with thousands separators if it is large, else with two decimals."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the percentile for a share of the values (0.99: the 99th percentile).

    The values are sorted in ascending order. The nearest rank is returned, without interpolation.
    """
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
