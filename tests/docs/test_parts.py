"""Tests of the book's parts in the navigation: pages that are not written yet, and parts without pages."""

from __future__ import annotations

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from sphinx import addnodes

from tests.docs.conftest import BuildPages

INDEX = "# Book\n\n```{part} Part one: concepts\nconcepts\nguide/*\n```\n\n```{part} Labs\nlabs/*\n```\n"


def test_pages_that_do_not_exist_and_empty_parts_are_left_out(build_pages: BuildPages) -> None:
    app = build_pages({"index": INDEX, "concepts": "# Concepts\n"}, "parts")
    parts = list(app.env.get_doctree("index").findall(addnodes.toctree))
    assert [(part["caption"], part["includefiles"]) for part in parts] == [("Part one: concepts", ["concepts"])]
    assert app.warning.getvalue() == ""


def test_a_pattern_shows_all_pages_that_it_matches(build_pages: BuildPages) -> None:
    pages = {"index": INDEX, "concepts": "# C\n", "labs/lab-02": "# Two\n", "labs/lab-01": "# One\n"}
    app = build_pages(pages, "parts")
    parts = list(app.env.get_doctree("index").findall(addnodes.toctree))
    assert parts[1]["includefiles"] == ["labs/lab-01", "labs/lab-02"]
    assert app.warning.getvalue() == ""


def test_a_new_page_appears_without_a_change_of_the_index(build_pages: BuildPages) -> None:
    app = build_pages({"index": INDEX, "concepts": "# Concepts\n"}, "parts")
    (app.srcdir / "labs").mkdir()
    (app.srcdir / "labs" / "lab-01.md").write_text("# One\n")
    app.build()
    assert "labs/lab-01" in app.env.toctree_includes["index"]
