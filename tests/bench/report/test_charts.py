"""Tests of the charts: a chart shows the measured figures, and every benchmark has a chart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hmb.bench.report.origin import PUBLISHED, by_origin, view_of
from hmb.bench.report.plot import command
from hmb.bench.report.samples import Sample
from hmb.bench.report.view import Column, SampleView
from hmb.bench.scenarios import growth
from hmb.bench.security.command import SecurityView

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'hmb[docs]'")

from click.testing import CliRunner

GROWTH = [
    Sample("growth", "HMB", "load", 0, {"of": of, "unit": "connections", "size": size},
           {"records_per_second": 1e6 / size, "p99_ms": float(size)})
    for of in ("connections", "log")
    for size in (1, 1000)
]  # fmt: skip
RATES = [
    Sample("x", broker, "", number, {"size": size}, {"rate": rate * size + number})
    for broker, rate in (("HMB", 100.0), ("Kafka", 200.0))
    for size in (1, 100)
    for number in range(3)
]
VIEW = SampleView(
    columns=(Column("rate", "records/s"),),
    title=lambda _: "Rates",
    cell=lambda sample: f"{sample.parameters['size']} B",
)


def test_dots_are_the_medians_of_the_cells() -> None:
    (panel,) = VIEW.charts(RATES)["x"].axes
    medians = [line.get_xdata().tolist() for line in panel.get_lines() if line.get_linestyle() == "None"]
    assert [101.0, 10_001.0] in medians and [201.0, 20_001.0] in medians
    assert [label.get_text() for label in panel.get_yticklabels()] == ["1 B", "100 B"]
    assert panel.get_xscale() == "log"


def test_compared_columns_have_a_panel_of_their_ratios() -> None:
    """For a column with `compare=True`, a chart has a second panel with the rates of HMB divided by those of Kafka.

    Before a bug was fixed, a chart had only one panel. If one workload was much faster than the others, small
    differences between brokers were not visible.
    """
    compared = replace(VIEW, columns=(Column("rate", "records/s", compare=True), Column("rate", "not compared")))
    rates, over = compared.charts(RATES)["x"].axes
    assert (rates.get_xlabel(), over.get_xlabel()) == ("records/s", "records/s, over Kafka")
    medians = [line.get_xdata().tolist() for line in over.get_lines() if line.get_linestyle() == "None"]
    assert [pytest.approx(101 / 201), pytest.approx(10_001 / 20_001)] in medians


def test_curves_have_a_chart_for_each_thing_and_a_panel_for_each_unit() -> None:
    charts = growth.VIEW.charts(GROWTH)
    assert list(charts) == ["growth-1", "growth-2"]
    panels = charts["growth-1"].axes
    assert [panel.get_ylabel() for panel in panels] == ["records/s", "ms"]
    assert [panel.get_xlabel() for panel in panels] == ["connections", "connections"]
    assert panels[0].get_lines()[0].get_ydata().tolist() == [1e6, 1e3]
    assert [label.get_text() for label in panels[0].get_xticklabels()] == ["1", "1,000"]


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.json")), ids=lambda path: path.stem)
def test_every_published_file_has_tables_and_charts(path: Path) -> None:
    """Every published file of results has tables. Every benchmark except `security` also has charts.

    Before a bug was fixed, only the benchmarks `thesis`, `growth` and `threads` had charts.
    """
    ((origin, samples),) = by_origin([path]).items()
    view = view_of(origin.suite)
    assert bool(view.charts(samples)) is not isinstance(view, SecurityView)
    assert all(len(table.rows) > 1 for table in view.tables(samples))


def test_pictures_are_written_and_name_the_machine(tmp_path: Path) -> None:
    path = next(PUBLISHED.glob("start-*.json"))
    result = CliRunner().invoke(command, [str(path), "--to", str(tmp_path)])
    assert result.stdout.split() == [str(tmp_path / "start.svg"), str(tmp_path / "start.png")]
    assert (tmp_path / "start.png").stat().st_size > 1000
    (origin,) = by_origin([path])
    assert f"<!-- {origin} -->" in (tmp_path / "start.svg").read_text()
