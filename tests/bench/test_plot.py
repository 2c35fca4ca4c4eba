"""The charts hold what the runs measured, and what the thesis did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hmb.bench import plot
from hmb.bench.cells import BATCH_SIZE_BENCHMARK, CELLS

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'hmb[docs]'")


def sample(scenario: int, generation: str, rate: float, **sizes: int) -> dict[str, Any]:
    parameters = {"scenario": scenario, "generation": generation, **sizes}
    return {"suite": "thesis", "parameters": parameters, "figures": {"wire_mb_per_second": rate}}


SAMPLES = [
    sample(scenario, "" if scenario == 4 else "4.3.0", 10.0 * scenario + turn, message_bytes=m, batch_bytes=b)
    for scenario in (1, 2, 3, 4)
    for turn in range(3)
    for m, b in ((cell.message, cell.batch) for cell in CELLS)
]


def test_a_chart_has_the_thesis_beside_the_medians_of_the_runs() -> None:
    figure = plot.figures_of({"samples": SAMPLES})["thesis-batch-size"]
    theirs, ours = figure.axes
    assert theirs.get_lines()[0].get_ydata().tolist() == [cell.thesis[0] for cell in BATCH_SIZE_BENCHMARK]
    medians = {tuple(line.get_ydata()) for line in ours.get_lines()}
    for scenario in (1, 2, 3, 4):
        assert (10.0 * scenario + 1,) * 5 in medians


def test_pictures_are_written(tmp_path: Path) -> None:
    for name, figure in plot.figures_of({"samples": SAMPLES}).items():
        figure.savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000


def test_what_has_no_chart_is_named() -> None:
    with pytest.raises(ValueError, match="nothing is drawn of start"):
        plot.figures_of({"samples": [{"suite": "start"}]})


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(ValueError, match="no file of samples"):
        plot.read(tmp_path / "x.json")
