"""Tests of drawings in the documentation: errors for wrong drawings, the picture on a page, and the book's drawings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")

from docutils import nodes

from tests.docs.conftest import EXTENSIONS, BuildPages

DRAWINGS = sorted(path for part in ("concepts", "storage") for path in EXTENSIONS.parent.glob(f"{part}/drawings/*.py"))


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    return importlib.import_module("drawing")


def test_a_box_returns_the_points_that_arrows_touch(drawing: Any) -> None:
    box = drawing.Drawing(100, 100, "a box").box(10, 20, 40, 30, "one")
    assert (box.left, box.right, box.top, box.bottom) == ((10, 35), (50, 35), (30, 20), (30, 50))


def test_a_text_that_is_wider_than_its_box_is_refused(drawing: Any) -> None:
    with pytest.raises(drawing.DrawingError, match="'log end offset' is too wide for a box of 60 pixels"):
        drawing.Drawing(100, 100, "").box(0, 0, 60, 30, "log end offset")


@pytest.mark.parametrize("shape", ["box", "line", "text"])
def test_a_shape_outside_of_the_canvas_is_refused(drawing: Any, shape: str) -> None:
    canvas = drawing.Drawing(100, 100, "")
    draw = {
        "box": lambda: canvas.box(80, 10, 30, 30),
        "line": lambda: canvas.line((10, 10), (10, 101)),
        "text": lambda: canvas.text(90, 50, "offset"),
    }
    with pytest.raises(drawing.DrawingError, match="is not on the canvas of 100 by 100"):
        draw[shape]()


def test_an_arrow_ends_with_its_head_at_the_last_point(drawing: Any) -> None:
    canvas = drawing.Drawing(100, 100, "an arrow")
    canvas.arrow((10, 50), (90, 50))
    line, head = ElementTree.fromstring(canvas.svg())
    assert line.get("points") == "10,50 82,50"
    assert head.get("points") == "90,50 82,54 82,46"
    with pytest.raises(drawing.DrawingError, match="has no direction"):
        canvas.arrow((10, 50), (10, 50))


def test_a_page_does_not_show_the_empty_edges_of_a_canvas(drawing: Any) -> None:
    canvas = drawing.Drawing(500, 400, "a box")
    canvas.box(100, 50, 80, 30)
    assert canvas.extent == (94, 44, 186, 86)
    assert ElementTree.fromstring(canvas.svg()).get("viewBox") == "94 44 92 42"


def test_a_book_for_an_e_reader_shows_drawings_without_a_style_sheet(build_pages: BuildPages) -> None:
    pages = {"index": "# Page\n\n```{drawing} shapes.py:good\nA log.\n```\n", "shapes.py": MODULE}
    app = build_pages(pages, "drawing", builder="epub")
    page = ElementTree.fromstring((app.outdir / "index.xhtml").read_text())
    (box,) = page.iter("{http://www.w3.org/2000/svg}rect")
    assert (box.get("fill"), box.get("stroke")) == importlib.import_module("tones").ON_LIGHT["plain"][::-1]


def test_words_cannot_break_the_picture(drawing: Any) -> None:
    canvas = drawing.Drawing(200, 100, 'a "queue" <of> records & more')
    canvas.text(100, 50, "a < b & c")
    picture = ElementTree.fromstring(canvas.svg())
    assert picture.get("aria-label") == 'a "queue" <of> records & more'
    assert picture[0].text == "a < b & c"


MODULE = """
from drawing import Drawing

def good():
    drawing = Drawing(100, 50, "a box with one word")
    drawing.box(10, 10, 80, 30, "log")
    return drawing

def bad():
    drawing = Drawing(100, 50, "a box that is too small")
    drawing.box(10, 10, 20, 30, "segment")
    return drawing
"""


def test_a_page_shows_a_drawing_with_its_caption(build_pages: BuildPages) -> None:
    text = "# Page\n\n```{drawing} shapes.py:good\nThe *log*.\n```\n"
    app = build_pages({"index": text, "shapes.py": MODULE}, "drawing")
    (figure,) = app.env.get_doctree("index").findall(nodes.figure)
    picture, caption = figure.children
    assert ElementTree.fromstring(picture.astext()).get("aria-label") == "a box with one word"
    assert caption.astext() == "The log."
    assert app.warning.getvalue() == ""
    assert any(str(path).endswith("shapes.py") for path in app.env.dependencies["index"])


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("shapes.py:bad", "'segment' is too wide"),
        ("shapes.py:missing", "has no function 'missing'"),
        ("missing.py:good", "is not a Python file"),
    ],
)
def test_a_drawing_that_fails_is_a_warning_of_its_page(build_pages: BuildPages, argument: str, complaint: str) -> None:
    app = build_pages({"index": f"# Page\n\n```{{drawing}} {argument}\n```\n", "shapes.py": MODULE}, "drawing")
    assert complaint in app.warning.getvalue()


def functions_of(path: Path) -> Iterator[str]:
    source = path.read_text()
    return (line[4 : line.index("(")] for line in source.splitlines() if line.endswith("-> Drawing:"))


@pytest.mark.parametrize(("path", "name"), [(path, name) for path in DRAWINGS for name in functions_of(path)])
def test_each_drawing_describes_itself_in_words(drawing: Any, path: Path, name: str) -> None:
    picture = ElementTree.fromstring(drawing.load(path, name)().svg())
    assert picture.get("role") == "img"
    assert len((picture.get("aria-label") or "").split()) >= 15
    # The texts of a drawing must be short.
    assert max(len((text.text or "").split()) for text in picture.iterfind(".//{*}text")) <= 8


def test_no_line_of_a_state_machine_crosses_a_number(drawing: Any) -> None:
    from hmb.coordinator.transactions.states import TRANSITIONS

    svg = ElementTree.fromstring(importlib.import_module("states").picture(TRANSITIONS).svg())
    lines = [line.get("points", "").split() for line in svg.iterfind("{*}polyline")]
    points = [[tuple(map(float, point.split(","))) for point in line] for line in lines]
    parts = [part for line in points for part in pairwise(line)]
    numbers = [text for text in svg.iterfind("{*}text") if (text.text or "").isdigit()]
    assert len(numbers) == len(list(TRANSITIONS)) > 15
    for number in numbers:
        x, y, wide = float(number.get("x", "")), float(number.get("y", "")) - 4, 8 * len(number.text or "")
        left = x - wide if number.get("text-anchor") == "end" else x
        for (from_x, from_y), (to_x, to_y) in parts:
            is_beside = max(from_x, to_x) <= left or min(from_x, to_x) >= left + wide
            assert is_beside or max(from_y, to_y) < y - 5 or min(from_y, to_y) > y + 5, number.text


def test_a_state_machine_is_drawn_from_its_table(drawing: Any) -> None:
    from hmb.coordinator.classic.states import TRANSITIONS

    picture = importlib.import_module("states").picture(TRANSITIONS)
    svg = ElementTree.fromstring(picture.svg())
    texts = [text.text for text in svg.iterfind(".//{*}text")]
    assert {"Empty", "PreparingRebalance", "Stable"} <= set(texts)
    numbers = [str(number) for number, _ in enumerate(TRANSITIONS, 1)]
    assert numbers == sorted(filter(str.isdigit, texts), key=int)
    assert inspect.cleandoc(picture.alternative).startswith("A state machine: step 1 from ")
