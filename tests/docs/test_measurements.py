"""A page shows the tables of the newest results of a benchmark suite. Without results, the page contains a note."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from docutils import nodes

from tests.docs.conftest import BuildPages

Build = Callable[[str], tuple[nodes.document, str]]


def document(suite: str, rate: float, **parameters: Any) -> dict[str, Any]:
    sample = {
        "suite": suite,
        "broker": "HMB",
        "client": "HMB",
        "turn": 0,
        "parameters": parameters,
        "figures": {"first_ack_seconds": rate, "broker_resident_bytes": 3e7, "append_us": rate},
        "at": "2026-11-21T20:00:00Z",
    }
    machine = {"cores": 2, "cpu": "a processor"}
    commit = "0123456789abcdef and changes"
    return {"machine": machine, "commit": commit, "command": f"hmb bench {suite}", "samples": [sample]}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


@pytest.fixture
def build(build_pages: BuildPages, results: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Return a function that builds a page. The function returns the page's content and the warnings of Sphinx."""
    monkeypatch.setattr(import_module("measurements"), "RESULTS", results)

    def page(text: str) -> tuple[nodes.document, str]:
        app = build_pages({"index": f"# Measured\n\n{text}\n"}, "measurements")
        return app.env.get_doctree("index"), app.warning.getvalue()

    return page


def test_the_newest_file_of_a_suite_is_shown_with_its_origin(build: Build, results: Path) -> None:
    for name, seconds in (("start-20261121-200000", 0.5), ("start-20261122-080000", 0.25), ("started-2027", 9.0)):
        (results / f"{name}.json").write_text(json.dumps(document("start", seconds)))
    page, complaints = build("```{measured} start\n```")
    (table,) = page.findall(nodes.table)
    assert [entry.astext() for entry in table.findall(nodes.entry)][3:] == ["HMB", "0.25 (0.25 .. 0.25)", "30"]
    assert "start-20261122-080000.json: hmb bench start, commit 0123456789 and changes; 2 cores" in page.astext()
    assert complaints == ""


def test_a_page_notes_that_no_run_is_published_yet(build: Build) -> None:
    page, complaints = build("```{measured} thesis\n```\n\n```{measured-plot} growth\n```")
    assert "No run of hmb bench thesis is published yet." in page.astext()
    assert "No run of hmb bench growth is published yet." in page.astext()
    assert complaints == ""


def test_a_missing_file_and_a_file_of_something_else_are_errors(build: Build, results: Path) -> None:
    _, complaints = build("```{measured} start-20261121-200000.json\n```")
    assert "start-20261121-200000.json" in complaints and "No such file" in complaints
    (results / "start-20261121-200000.json").write_text("{}")
    _, complaints = build("```{measured} start-20261121-200000.json\n```")
    assert "is not a file of samples" in complaints


def test_a_chart_is_in_the_page_itself(build: Build, results: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'hmb[docs]'")
    grown = document("growth", 2.0, of="log", unit="GB in the log", size=50)
    grown["samples"][0]["figures"] = {"append_us": 2.0}
    (results / "growth-20261121-200000.json").write_text(json.dumps(grown))
    page, complaints = build("```{measured-plot} growth\n```")
    (picture,) = page.findall(nodes.raw)
    assert picture.astext().startswith('<div class="measured-plot"><svg') and complaints == ""


def test_the_thesis_own_figures_are_those_of_the_cells(build: Build) -> None:
    page, _ = build("```{thesis-figures}\n```")
    batch, _ = page.findall(nodes.table)
    assert [entry.astext() for entry in batch.findall(nodes.entry)][-7:] == [
        "100 B, batch 56769",
        *("98", "48", "16", "17"),
        *("0.49", "0.16"),
    ]
