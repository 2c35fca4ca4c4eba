"""Tests of the tables, and of the ratios between runs of the same round."""

from __future__ import annotations

import math

from hmb.bench.report.samples import Sample
from hmb.bench.report.tables import Table, counted, ratios, text


def runs(rates: dict[int, float]) -> list[Sample]:
    """Return samples with the given rates. `rates` maps the number of each round to its rate."""
    return [Sample("x", "HMB", "", number, {}, {"rate": rate}) for number, rate in rates.items()]


def rate(sample: Sample) -> float:
    return sample.figures["rate"]


def test_columns_of_numbers_align_right() -> None:
    shown = list(text([Table("title", [["broker", "MB"], ["a", "1,000.5"], ["bcd", "2"]])]))
    assert shown == ["title", "  broker       MB", "  a       1,000.5", "  bcd           2"]


def test_a_ratio_is_of_the_rounds_that_both_have() -> None:
    ratio = ratios(runs({1: 30.0, 0: 10.0, 2: 5.0}), runs({0: 5.0, 1: 10.0}), rate)
    assert ratio is not None and sorted(ratio.values) == [2.0, 3.0]
    assert ratios(runs({0: 1.0}), [], rate) is None


def test_a_run_without_the_figure_has_no_ratio() -> None:
    ratio = ratios(runs({0: math.nan, 1: 2.0}), runs({0: 1.0, 1: 1.0}), rate)
    assert ratio is not None and ratio.values == (2.0,)
    assert ratios(runs({0: 1.0}), runs({0: 0.0}), rate) is None


def test_nouns_have_their_number() -> None:
    assert (counted(1, "partition"), counted(2_000, "partition")) == ("1 partition", "2,000 partitions")
