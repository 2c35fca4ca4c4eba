"""The trend of a group's lag over the last minutes: growing, shrinking or steady.

A sample is one measurement of the lag: a list `[time, lag]`. The lag of a group changes all the time, even if its
consumers are fast enough: for example 3, 0, 7, 2, 5. So two samples cannot show a trend.

To find a trend, this module compares each sample of the lag with each later sample. For each pair, the module adds 1 to
a sum if the later lag is greater, and subtracts 1 if the later lag is smaller. Among the lags 3, 0, 7, 2, 5, six pairs
grow and four shrink, so the sum is 2. The lags 1, 4, 6, 9, 12 have ten growing pairs, so the sum is 10.

If the lag is steady, pairs of samples add 1 to the sum about as often as they subtract 1, so the sum is near 0.
For five samples, its standard deviation is 4.1.

The lag is *growing* if the sum over all pairs is greater than two standard deviations of the sum. It is
*shrinking* if the sum is less than minus two standard deviations. Otherwise, it is *steady*. For five samples,
two standard deviations are 8.2. The sum 2 then means a steady lag, and the sum 10 a growing lag.

The comparison of each sample with each later sample is called the Mann-Kendall test. If there are fewer than five
samples, the module does not run the test, and reports no trend.

The module also computes how fast the lag of a group changes, in records per second. For each pair of samples,
it divides the change of the lag by the time between the two samples. The result is the median of all these
rates. An exceptionally large lag in a single sample therefore hardly changes the result. This method is called
the Theil-Sen estimator.

HMB's broker stores a sample of each group's lag every ten seconds (hmb/monitoring/sampling.py). `hmb top`
gets these samples from the broker. Other brokers store no samples, so `hmb top` takes a sample every ten
seconds itself (`LagSamples`). A trend needs four samples and the current lag. `hmb top` takes the fourth
sample after about 30 s, and shows the first trend at its next update.
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
KEPT = 30  # the number of samples that `LagSamples` stores
FEWEST = 5  # the smallest number of samples from which `trend_of` computes a trend
SIGNIFICANT = 2.0  # standard deviations
BARS = "▁▂▃▄▅▆▇█"


class LagTrend(NamedTuple):
    """Whether and how fast the lag of a group changes."""

    word: str  # "growing", "shrinking" or "steady"
    per_second: float  # the change of the lag, in records per second


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
    """Return a text with one bar for each sample `[time, lag]`. The greatest lag has the highest bar."""
    greatest = max((lag for _, lag in lags), default=0)
    return "".join(BARS[lag * (len(BARS) - 1) // greatest if greatest else 0] for _, lag in lags)


class LagSamples:
    """Collects samples of the lags of groups, for brokers whose state contains no samples, such as Apache Kafka."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, dict[str, int]]] = deque(maxlen=KEPT)  # time, and the lag of each group

    def complete(self, state: State) -> None:
        """If a group in `state` has no lag samples, add the samples that this object has stored.

        Then store the current lag of each group as a new sample, unless the newest stored sample is less than ten
        seconds old.
        """
        for group in state["groups"]:
            name = group["group_id"]
            group["lags"] = group["lags"] or [[time, lags[name]] for time, lags in self._samples if name in lags]
        if not self._samples or state["time"] >= self._samples[-1][0] + INTERVAL:
            self._samples.append((state["time"], {group["group_id"]: lag_of(group) for group in state["groups"]}))


def lag_of(group: dict[str, Any]) -> int:
    """Return the sum of the lags of a group's partitions."""
    return sum(each["lag"] or 0 for each in group["positions"])
