"""Tests of distributions: a table shows the median, the minimum and the maximum of the measured values.

The function `percentile` returns one of the measured values.
"""

from __future__ import annotations

from hmb.bench.report.distribution import Distribution, percentile


def test_a_distribution_is_shown_as_median_minimum_and_maximum() -> None:
    assert str(Distribution((1.0, 3.0, 2.0))) == "2.00 (1.00 .. 3.00)"
    assert str(Distribution((1_000.0, 3_000.0))) == "2,000 (1,000 .. 3,000)"


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(100)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (50.0, 99.0, 99.0)
    assert percentile([7.0], 0.5) == 7.0
