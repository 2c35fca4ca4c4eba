"""The charts hold what the runs measured, and what the thesis did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hmb.bench.report import plot
from hmb.bench.report.samples import Sample
from hmb.bench.thesis.cells import BATCH_SIZE_BENCHMARK, CELLS, Cell

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'hmb[docs]'")


def sample(suite: str, turn: int, parameters: dict[str, Any], **figures: float) -> dict[str, Any]:
    return vars(Sample(suite, "HMB", "HMB", turn, parameters, figures))


def of_thesis(scenario: int, generation: str, cell: Cell, turn: int, rate: float) -> dict[str, Any]:
    sizes = {"message_bytes": cell.message, "batch_bytes": cell.batch}
    return sample("thesis", turn, {"scenario": scenario, "generation": generation, **sizes}, wire_mb_per_second=rate)


SAMPLES = [
    of_thesis(scenario, "" if scenario == 4 else "4.3.0", cell, turn, 10.0 * scenario + turn)
    for scenario in (1, 2, 3, 4)
    for turn in range(3)
    for cell in CELLS
]
GROWTH = [
    sample("growth", 0, {"of": of, "unit": "connections", "size": size}, records_per_second=1e6 / size, p99_ms=size)
    for of in ("connections", "log")
    for size in (1, 1000)
]
THREADS = [
    sample("threads", turn, {"handlers": n, "message_bytes": 100, "batch_bytes": 195, "producers": 1},
           records_per_second=100.0 * (n + 1) + turn)
    for n in (1, 0, 8)
    for turn in range(3)
]  # fmt: skip


def test_a_chart_has_the_thesis_beside_the_medians_of_the_runs() -> None:
    figure = plot.figures_of({"samples": SAMPLES})["thesis-batch-size"]
    theirs, ours = figure.axes
    assert theirs.get_lines()[0].get_ydata().tolist() == [cell.thesis[0] for cell in BATCH_SIZE_BENCHMARK]
    medians = {tuple(line.get_ydata()) for line in ours.get_lines()}
    for scenario in (1, 2, 3, 4):
        assert (10.0 * scenario + 1,) * 5 in medians


def test_sizes_that_were_measured_are_on_the_axis() -> None:
    (panel, *_) = plot.figures_of({"samples": SAMPLES})["thesis-batch-size"].axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["195", "1,387", "8,192", "16,384", "56,769"]


def test_what_grows_has_a_chart_each_and_a_panel_for_each_unit() -> None:
    figures = plot.figures_of({"samples": GROWTH})
    assert list(figures) == ["growth-connections", "growth-log"]
    panels = figures["growth-connections"].axes
    assert [panel.get_ylabel() for panel in panels] == ["records/s", "ms"]
    assert [panel.get_xlabel() for panel in panels] == ["connections", "connections"]
    assert panels[0].get_lines()[0].get_ydata().tolist() == [1e6, 1e3]


def test_the_staged_layout_is_over_its_handlers_and_the_other_a_line() -> None:
    (panel,) = plot.figures_of({"samples": THREADS})["threads"].axes
    alone, staged = panel.get_lines()[:2]
    assert (alone.get_label(), alone.get_ydata()) == ("a thread a connection", [101.0, 101.0])
    assert (staged.get_xdata().tolist(), staged.get_ydata().tolist()) == ([1, 8], [201.0, 901.0])


@pytest.mark.parametrize("samples", [SAMPLES, GROWTH, THREADS], ids=["thesis", "growth", "threads"])
def test_pictures_are_written(tmp_path: Path, samples: list[dict[str, Any]]) -> None:
    for name, figure in plot.figures_of({"samples": samples}).items():
        figure.savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000


def test_what_has_no_chart_is_named() -> None:
    with pytest.raises(ValueError, match="nothing is drawn of start"):
        plot.figures_of({"samples": [sample("start", 0, {})]})
