"""Tests of the directive `step-by-step`, which shows a process as a series of drawings with captions.

Some tests build a small page with the directive `step-by-step`. Other tests check each process that the documentation
shows.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from docutils import nodes

from tests.docs.conftest import EXTENSIONS, BuildPages

DOCS = EXTENSIONS.parent
PROCESSES = sorted((DOCS / "steps").glob("*.py"))

MODULE = """
from drawing import Drawing
from step_by_step import Step

def drawn(word, width=100):
    drawing = Drawing(width, 50, f"a box with the word {word}")
    drawing.box(10, 10, 80, 30, word)
    return drawing

def good():
    return [Step("The *log* is empty.", drawn("log")), Step("The log has a record.", drawn("record"))]

def single():
    return [Step("The log is empty.", drawn("log"))]

def jumping():
    return [Step("The log is empty.", drawn("log")), Step("The log has a record.", drawn("record", 200))]

def wide():
    return [Step("The log is empty.", drawn("a very long word"))]
"""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("step_by_step")


def page(function: str, title: str = "A log") -> dict[str, str]:
    return {"index": f"# Page\n\n```{{step-by-step}} processes.py:{function}\n{title}\n```\n", "processes.py": MODULE}


def test_a_page_contains_every_step_with_its_number_and_its_caption(build_pages: BuildPages) -> None:
    app = build_pages(page("good"), "step_by_step")
    assert app.warning.getvalue() == ""
    (shown,) = app.env.get_doctree("index").findall(nodes.container)
    title, *figures = shown.children
    assert title.astext() == "A log"
    assert [each.children[1].astext() for each in figures] == [
        "Step 1 of 2. The log is empty.",
        "Step 2 of 2. The log has a record.",
    ]
    pictures = [ElementTree.fromstring(each.children[0].astext()) for each in figures]
    assert [each.get("aria-label") for each in pictures] == ["a box with the word log", "a box with the word record"]
    assert any(str(path).endswith("processes.py") for path in app.env.dependencies["index"])


def test_no_step_is_hidden_until_the_script_runs(build_pages: BuildPages) -> None:
    app = build_pages(page("good"), "step_by_step", builder="html")
    html = (Path(app.outdir) / "index.html").read_text()
    assert html.count('class="drawing" viewBox=') == 2
    assert "hidden" not in html.partition('class="step-by-step')[2].partition("</section>")[0]
    assert "step-by-step.js" in html
    assert "<button" not in html  # A button without the script would do nothing.


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        ("single", "at least two steps, and this one has 1"),
        ("jumping", "the drawings have different sizes: 100 x 50, 200 x 50"),
        ("wide", "'a very long word' is too wide"),
        ("missing", "has no function 'missing'"),
    ],
)
def test_steps_that_cannot_be_shown_are_a_warning_of_their_page(
    build_pages: BuildPages, function: str, complaint: str
) -> None:
    app = build_pages(page(function), "step_by_step")
    assert complaint in app.warning.getvalue()


@pytest.mark.parametrize("path", PROCESSES, ids=[path.stem for path in PROCESSES])
def test_each_process_of_the_book_can_be_read_without_seeing_it(steps: Any, path: Path) -> None:
    source = path.read_text()
    names = [line[4 : line.index("(")] for line in source.splitlines() if line.endswith("() -> list[Step]:")]
    assert names
    for name in names:
        made = steps.checked(importlib.import_module("drawing").load(path, name)())
        assert 3 <= len(made) <= 12
        alternatives = [step.drawing.alternative for step in made]
        assert all(len(words.split()) >= 10 for words in alternatives)
        # Each drawing has a different alternative text, so that people who hear the text notice each change.
        assert len(set(alternatives)) == len(made)
        assert all(
            step.caption.startswith(("The ", "A ", "Broker ", "Follower ", "Member ", "Members ")) for step in made
        )
        pages = [each for each in DOCS.rglob("*.md") if f"steps/{path.name}:{name}\n" in each.read_text()]
        assert len(pages) == 1


def test_the_look_up_ends_at_the_batch_that_contains_the_wanted_offset(steps: Any) -> None:
    lookup = importlib.import_module("drawing").load(DOCS / "steps" / "index_lookup.py", "look_up")()
    last = lookup.scanned[-1]
    wanted = lookup.search.wanted
    assert last.base_offset <= wanted <= last.last_offset
    assert lookup.segment == max(base for base in lookup.bases if base <= wanted)
    assert len(lookup.scanned) < len(lookup.batches)


def function_of(process: str, name: str) -> Any:
    return importlib.import_module("drawing").load(DOCS / "steps" / f"{process}.py", name)


def test_a_lost_answer_leaves_each_record_once_and_only_with_sequence_numbers(steps: Any) -> None:
    run = function_of("lost_answer", "run")
    requests = run.__globals__
    assert run(requests["SENT"])[-1].values == ["order 1", "order 2", "order 3", "order 4"]
    assert [outcome.answer for outcome in run(requests["SENT"])][4] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert run(requests["WITHOUT_IDS"])[-1].values == ["order 1", "order 1"]


def test_the_crash_loses_an_acknowledged_order_only_with_acks_1(steps: Any) -> None:
    last = function_of("replication", "steps")()[-1].drawing
    assert "With acks=1, order 3 is lost." in last.alternative
    texts = [text.text for text in ElementTree.fromstring(last.svg()).iterfind(".//{*}text")]
    assert "acks=all: order 1, order 4" in texts
    assert "acks=1: order 1, order 2, order 4" in texts


@pytest.mark.parametrize(("name", "pauses"), [("classic", True), ("modern", False)])
def test_only_the_classic_rebalance_stops_all_members(steps: Any, name: str, pauses: bool) -> None:
    alternatives = [step.drawing.alternative for step in function_of("rebalance", name)()]
    assert any(words.count("reads nothing") == 3 for words in alternatives) is pauses
    assert "Stable" in alternatives[0]
    assert "Stable" in alternatives[-1]
    assert "reads nothing" not in alternatives[-1]
