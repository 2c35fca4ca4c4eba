"""Tests of the pages about concepts: their order, and the drawing, the example and the links that each page needs.

The example on each page about a concept is a terminal session: commands and their output. Links on the page lead to
the glossary, which explains technical words.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.conftest import EXTENSIONS

DOCS = EXTENSIONS.parent
INDEX = (DOCS / "concepts" / "index.md").read_text()
PAGES = sorted(path for path in (DOCS / "concepts").glob("*.md") if path.stem != "index")
GLOSSARY = (DOCS / "glossary.md").read_text()
BIBLIOGRAPHY = (DOCS / "bibliography.md").read_text()


def words_of_glossary() -> list[str]:
    """Return the words that the glossary explains, spelled as in the glossary."""
    body = GLOSSARY.partition(":sorted:")[2]
    return [line for line in body.splitlines() if line and line[0] not in " :"]


def test_the_glossary_explains_at_least_120_words_once() -> None:
    words = words_of_glossary()
    assert len(words) >= 120
    assert len({word.lower() for word in words}) == len(words)
    # The documentation does not show an explanation that is on the line of its word. Such a line has more than 4 words.
    assert [word for word in words if len(word.split()) > 4] == []


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_each_page_has_a_drawing_a_run_and_words_of_the_glossary(path: Path) -> None:
    text = path.read_text()
    assert "```{drawing} drawings/" in text
    assert "```{session}\n" in text
    assert text.count("{term}`") >= 3
    assert "\n## In short\n" in text


def test_the_pages_are_read_in_the_order_of_the_first_page() -> None:
    listed = re.findall(r"^\d+\. \[[^\]]+\]\((\S+)\.md\)", INDEX, re.MULTILINE)
    navigation = INDEX.partition(":hidden:")[2].partition("```")[0].split()
    assert listed == navigation
    assert sorted(listed) == [path.stem for path in PAGES]
    for page, following in pairwise(listed):
        text = (DOCS / "concepts" / f"{page}.md").read_text()
        assert re.search(rf"^Next: \[[^\]]+\]\({following}\.md\)", text, re.MULTILINE)


def test_every_cited_work_is_in_the_bibliography() -> None:
    cited = {label for path in PAGES for label in re.findall(r"\]\(#([a-z0-9-]+)\)", path.read_text())}
    assert cited
    assert all(f"({label})=\n" in BIBLIOGRAPHY for label in cited)
