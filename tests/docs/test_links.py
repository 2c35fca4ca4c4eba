"""Tests of links: the build warns of a link to a missing file or anchor, and lists the links to other sites."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from docutils import nodes

from tests.docs.conftest import EXTENSIONS, BuildPages


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("links")


def write(folder: Path, **pages: str) -> None:
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)


def test_a_link_to_an_existing_anchor_is_not_reported(links: Any, tmp_path: Path) -> None:
    write(tmp_path, a='<a href="b.html#two words">x</a> <a href="#here">x</a> <p id="here">', b='<h2 id="two words">')
    assert list(links.broken_links(tmp_path)) == []


def test_a_link_to_a_missing_file_or_anchor_is_reported(links: Any, tmp_path: Path) -> None:
    write(tmp_path, a='<a href="b.html#gone">x</a> <a href="c.html">x</a>', b="<p>")
    assert list(links.broken_links(tmp_path)) == [
        "a.html: the anchor of the link b.html#gone does not exist",
        "a.html: the file of the link c.html does not exist",
    ]


def test_links_to_other_sites_are_not_tried(links: Any, tmp_path: Path) -> None:
    write(tmp_path, a='<a href="https://example.org/#x">x</a> <a href="mailto:a@example.org">x</a>')
    assert list(links.broken_links(tmp_path)) == []


def test_a_build_warns_about_an_anchor_in_raw_html(build_pages: BuildPages) -> None:
    page = '# Page\n\n```{raw} html\n<a href="#nowhere">x</a>\n```\n'
    app = build_pages({"index": page}, "links", builder="html")
    assert "index.html: the anchor of the link #nowhere does not exist" in app.warning.getvalue()


def test_the_list_names_each_link_with_its_pages_and_date(build_pages: BuildPages) -> None:
    pages = {
        "index": "# Page\n\n[one](https://one.example/) [here](other.md)\n\n```{external-links}\n```\n",
        "other": "---\norphan: true\n---\n# Other\n\n[one](https://one.example/) [two](https://two.example/)\n",
        "links.txt": "2026-01-02 answered https://one.example/\n",
    }
    app = build_pages(pages, "links", builder="html")
    document = app.env.get_and_resolve_doctree("index", app.builder, tags=app.tags)
    rows = [[entry.astext() for entry in row.findall(nodes.entry)] for row in document.findall(nodes.row)]
    assert rows[1] == ["https://one.example/", "index and 1 more", "2026-01-02, answered"]
    assert rows[2][:2] == ["https://two.example/", "other"]
    assert rows[2][2].endswith(", listed")
    assert app.warning.getvalue() == ""


def test_a_link_that_answers_gets_the_present_date_and_one_that_fails_keeps_its_date(
    links: Any, tmp_path: Path
) -> None:
    file = tmp_path / "links.txt"
    file.write_text("2026-01-02 answered https://old.example/\n2026-01-02 listed https://gone.example/\n")
    results = [
        {"uri": "https://old.example/", "status": "broken"},
        {"uri": "https://new.example/", "status": "working"},
        {"uri": "other.html", "status": "unchecked"},
    ]
    links.store(file, results)
    assert links.read_entries(file) == {
        "https://new.example/": (links.today(), "answered"),
        "https://old.example/": ("2026-01-02", "answered"),
    }
