"""The trend of a group's lag over the last minutes: growing, shrinking or steady.

A sample is one measurement of the lag: a list `[time, lag]`. The lag of a group changes all the time, even if its
consumers are fast enough: for example 3, 0, 7, 2, 5. So two samples cannot show a trend.

To find a trend, this module compares each sample of the lag with each later sample. For each pair, the module adds 1 to
a sum if the later lag is greater, and subtracts 1 if the later lag is smaller. Among the lags 3, 0, 7, 2, 5, six pairs
grow and four shrink, so the sum is 2. The lags 1, 4, 6, 9, 12 have ten growing pairs, so the sum is 10.

Even if the lag is steady, the sum of the growing pairs (+1 each) and the shrinking pairs (-1 each) is not always 0,
because chance decides the order of the samples. For five samples in random order, the standard deviation of the sum is
4.1. The module therefore calls a lag *growing* only if the sum is greater than two standard deviations (8.2), and
*shrinking* only if the sum is less than -8.2. For example, the sum 2 means a steady lag, and the sum 10 a growing lag.

This comparison is the statistical test of Mann and Kendall: it compares each sample with each later sample, and counts
how many pairs grow and how many shrink. The module uses the test only if it has at least five samples. With fewer
samples, the module reports no trend.

The module computes by how many records a group's lag changes per second. For each pair of samples, it divides the
change of the lag by the time between the samples. The result is the median of these quotients, so one very large lag
hardly changes the result. This is the estimator of Theil and Sen.

HMB's broker takes a sample of each group every ten seconds (hmb/monitoring/sampling.py), and its state contains these
samples. Other brokers take no samples. For these brokers, `hmb top` itself takes the samples (`LagSamples`), so the
first trend appears after about 30 s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from statistics import median
from typing import Any, NamedTuple

from hmb.units import MS_PER_S

from .source import State

INTERVAL = 10_000  # ms between two samples
KEPT = 30  # samples
FEWEST = 5  # samples
SIGNIFICANT = 2.0  # standard deviations
BARS = "▁▂▃▄▅▆▇█"


class LagTrend(NamedTuple):
    """Whether and how fast the lag of a group changes."""

    word: str  # "growing", "shrinking" or "steady"
    per_second: float  # records


def trend_of(lags: Sequence[Sequence[int]]) -> LagTrend | None:
    """Return the trend of the samples `[time, lag]`, or None if there are too few samples."""
    count = len(lags)
    if count < FEWEST:
        return None
    pairs = [(after - before, (now - then) / MS_PER_S) for (then, before), (now, after) in combinations(lags, 2)]
    total = sum((change > 0) - (change < 0) for change, _ in pairs)
    slopes = [change / seconds for change, seconds in pairs if seconds > 0]
    deviation = sqrt(count * (count - 1) * (2 * count + 5) / 18)
    word = "steady" if abs(total) <= SIGNIFICANT * deviation else "growing" if total > 0 else "shrinking"
    return LagTrend(word, round(median(slopes), 1) if slopes else 0.0)


def bars(lags: Sequence[Sequence[int]]) -> str:
    """Draw the lags as one character for each sample. The greatest lag has the highest bar."""
    greatest = max((lag for _, lag in lags), default=0)
    return "".join(BARS[lag * (len(BARS) - 1) // greatest if greatest else 0] for _, lag in lags)


class LagSamples:
    """Collects samples of the lags of groups, for brokers whose state contains no samples, such as Apache Kafka."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, dict[str, int]]] = deque(maxlen=KEPT)  # time, and the lag of each group

    def complete(self, state: State) -> None:
        """Add the stored samples of the lag to each group in `state` that has no samples.

        After that, if the last sample is at least ten seconds old, store the lags in `state` as a new sample.
        """
        for group in state["groups"]:
            name = group["group_id"]
            group["lags"] = group["lags"] or [[time, lags[name]] for time, lags in self._samples if name in lags]
        if not self._samples or state["time"] >= self._samples[-1][0] + INTERVAL:
            self._samples.append((state["time"], {group["group_id"]: lag_of(group) for group in state["groups"]}))


def lag_of(group: dict[str, Any]) -> int:
    """Return the sum of the lags of a group's partitions."""
    return sum(each["lag"] or 0 for each in group["positions"])
