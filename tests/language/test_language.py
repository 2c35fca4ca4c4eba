"""The texts of every folder follow the rules that a program can check.

The command `python -m tests.language check FOLDER` prints each broken rule, with the place of the text.
"""

from __future__ import annotations

import pytest

from tests.language.rules import mistakes
from tests.language.texts import ROOT, Text, all_texts

LARGE = ("hmb", "tests")  # Each subfolder of these two folders is checked separately.


def place_of(text: Text) -> str:
    """Return the folder or file to which a text belongs. The test runs once for each such folder or file."""
    parts = text.path.parts
    return "/".join(parts[:2]) if parts[0] in LARGE else parts[0]


@pytest.fixture(scope="module")
def texts() -> dict[str, list[Text]]:
    """Return all texts of the project by their folders."""
    found: dict[str, list[Text]] = {}
    for text in all_texts():
        found.setdefault(place_of(text), []).append(text)
    return found


def places() -> list[str]:
    names = {path.name for path in ROOT.iterdir()} & {"cli", "bench", "docs", "labs", "pyspark_hmb"}
    pages = {path.name for path in ROOT.glob("*.md")}
    parts = {f"{top}/{path.name}" for top in LARGE for path in (ROOT / top).iterdir() if path.suffix in ("", ".py")}
    return sorted(names | pages | {part for part in parts if "__pycache__" not in part})


@pytest.mark.parametrize("place", places())
def test_texts_follow_the_rules(place: str, texts: dict[str, list[Text]]) -> None:
    found = [f"{text.place}: {it}" for text in texts.get(place, ()) for it in mistakes(text.words, text.kind)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("The broker sends a response.", 0),
        ("Who connects gets a thread.", 1),
        ("The request is under way.", 1),
        ("The log is full.  The broker stops.", 1),
        ("Source: thesis, chapter 9.2.", 0),
        ("Source: thesis ch. 9.2.", 1),
        ("The client waits " + "and waits " * 20 + "for the broker.", 1),
        ("What does a broker do?", 0),
    ],
)
def test_mistakes_are_found(words: str, count: int) -> None:
    assert len(list(mistakes(words, "docstring"))) == count
