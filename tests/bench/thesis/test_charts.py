"""Tests of the charts for the thesis: one panel shows the rates in the thesis, and the others show measured medians."""

from __future__ import annotations

import pytest

from hmb.bench.report.samples import Sample
from hmb.bench.thesis.cells import BATCH_SIZE_BENCHMARK, CELLS
from hmb.bench.thesis.suite import VIEW

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'hmb[docs]'")

SAMPLES = [
    Sample("thesis", "HMB", "HMB", number,
           {"scenario": scenario, "generation": "" if scenario == 4 else "4.3.0", **cell.parameters},
           {"wire_mb_per_second": 10.0 * scenario + number})
    for scenario in (1, 2, 3, 4)
    for number in range(3)
    for cell in CELLS
]  # fmt: skip


def test_the_first_panel_is_the_thesis_and_the_second_the_medians_of_the_runs() -> None:
    thesis, ours = VIEW.charts(SAMPLES)["thesis-batch-size"].axes
    assert thesis.get_lines()[0].get_ydata().tolist() == [cell.thesis[0] for cell in BATCH_SIZE_BENCHMARK]
    medians = {tuple(line.get_ydata()) for line in ours.get_lines()}
    for scenario in (1, 2, 3, 4):
        assert (10.0 * scenario + 1,) * 5 in medians


def test_the_label_says_that_the_panels_do_not_share_their_scale() -> None:
    """The label of the axis says that each panel has its own scale.

    Without this label, a reader may compare the heights of curves in panels with different scales.
    """
    panel, *_ = VIEW.charts(SAMPLES)["thesis-batch-size"].axes
    assert panel.get_ylabel() == "MB/s on the wire (each panel has its own scale)"


def test_the_axis_has_the_sizes_that_were_measured() -> None:
    panel, *_ = VIEW.charts(SAMPLES)["thesis-batch-size"].axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["195", "1,387", "8,192", "16,384", "56,769"]
