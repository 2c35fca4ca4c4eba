"""Computes the median and the range of repeated measurements, and percentiles of latencies.

The speed of a shared machine changes all the time, so a benchmark repeats each run. For most measured numbers,
a table shows the median of all runs, with the minimum and the maximum in parentheses: `1.03 (0.98 .. 1.07)`.

One bad run hardly changes the median. The closer the minimum and the maximum are to each other, the more a
reader can trust the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Distribution:
    """One or more measured values of the same quantity, for example the records/s in each round."""

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
    """Return a number as text, for example "1,234,567". A number below 100 has two decimals: "1.03"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of values that are sorted in ascending order. A `share` of 0.99 means the 99th percentile.

    The result is one of the values (nearest rank), without interpolation.
    """
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
