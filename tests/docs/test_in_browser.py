"""Tests of the book in a headless Chromium: all drawings, and a small page on a phone.

The tests show each drawing of the book in two fonts, because the same text is wider in some fonts than in others. One
font has letters of usual width, and the other font has wide letters.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("furo", reason="Sphinx and its theme are not installed; `make docs` installs them")

from hmb.bench.load.chromium import CHROMIUM, ChromiumTab, browser
from tests.docs.conftest import EXTENSIONS

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]
DOCS = EXTENSIONS.parent
DIRECTIVE = re.compile(r"^```\{(drawing|step-by-step|states)\} (\S+):(\w+)$", re.MULTILINE)
FONTS = ["Helvetica, Arial, sans-serif", "DejaVu Sans, Verdana, sans-serif"]

# Returns the faults of all drawings: texts that are cut, that leave their box, that overlap, or that a line crosses.
FIND_FAULTS = """[...document.querySelectorAll("svg.drawing")].flatMap((svg) => {
  const found = [], view = svg.viewBox.baseVal;
  const report = (fault, text) => found.push(`${svg.dataset.name}: "${text.textContent}" ${fault}`);
  const edges = (box) => [box.x, box.y, box.x + box.width, box.y + box.height];
  const common = (low, high, otherLow, otherHigh) => Math.min(high, otherHigh) - Math.max(low, otherLow);
  const overlap = ([a, b, c, d], [e, f, g, h]) => common(a, c, e, g) > 0.5 && common(b, d, f, h) > 0.5;
  const rects = [...svg.querySelectorAll("rect")].map((rect) => edges(rect.getBBox())).reverse();
  const lines = [...svg.querySelectorAll("polyline")].flatMap((line) => {
    const points = [...line.points];
    return points.slice(1).map((point, number) => [points[number], point]);
  });
  const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent).map((text) => {
    const [left, top, right, bottom] = edges(text.getBBox()), size = Number(text.getAttribute("font-size"));
    return [text, [left, top + size * 0.2, right, bottom - size * 0.2]]; // Most letters are in this part.
  });
  texts.forEach(([text, box], number) => {
    const [left, top, right, bottom] = box, x = (left + right) / 2, y = (top + bottom) / 2;
    const distances = [left - view.x, view.x + view.width - right, top - view.y, view.y + view.height - bottom];
    if (Math.min(...distances) < 0) report("is cut", text);
    for (const [other, its] of texts.slice(number + 1)) {
      if (overlap(box, its)) report(`overlaps "${other.textContent}"`, text);
    }
    const around = rects.find(([a, b, c, d]) => a < x && x < c && b < y && y < d); // the uppermost of several boxes
    if (around) {
      if (left < around[0] + 1 || right > around[2] - 1) report("is wider than its box", text);
      return;
    }
    if (rects.some((rect) => overlap(box, rect))) report("is partly on a box", text);
    const crosses = ([from, to]) => [...Array(101).keys()].some((step) => {
      const [px, py] = [from.x + (to.x - from.x) * step / 100, from.y + (to.y - from.y) * step / 100];
      return left < px && px < right && top < py && py < bottom;
    });
    if (lines.some(crosses)) report("is crossed by a line", text);
  });
  return found;
})"""


@pytest.fixture(scope="module")
def tab() -> Iterator[ChromiumTab]:
    with browser() as opened:
        yield opened


def pictures() -> Iterator[tuple[str, str]]:
    """Return a name and an SVG element for each drawing of the book."""
    drawing, step_by_step, states = (importlib.import_module(each) for each in ("drawing", "step_by_step", "states"))
    pages = (path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts)
    for page in pages:
        for kind, place, function in DIRECTIVE.findall(page.read_text()):
            name = f"{page.stem} {function}"
            if kind == "states":
                yield name, states.picture(getattr(importlib.import_module(place), function)).svg()
                continue
            drawn = drawing.load((page.parent / place).resolve(), function)()
            if kind == "drawing":
                yield name, drawn.svg()
                continue
            extent = step_by_step.common_extent([step.drawing for step in drawn])
            yield from ((f"{name} {number}", step.drawing.svg(extent)) for number, step in enumerate(drawn, 1))


@pytest.mark.parametrize("font", FONTS)
def test_no_text_of_a_drawing_is_cut_or_covered(
    tab: ChromiumTab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, font: str
) -> None:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    drawn = [svg.replace("<svg", f'<svg data-name="{name}"', 1) for name, svg in pictures()]
    style = (DOCS / "_static" / "hmb.css").read_text()
    page = tmp_path / "drawings.html"
    page.write_text(f'<!doctype html><style>{style}</style><body style="--font-stack: {font}">{"".join(drawn)}')
    tab.look()
    tab.open(page.as_uri())
    assert len(drawn) > 100
    assert tab.run(FIND_FAULTS) == []


PAGE = """# Is a log that nobody has read yet safe?

The option `--from-beginning` is a word that a page must not divide: `--from-beginning --repeat --num-records`,
`--from-beginning`. A name such as `/data/orders-0/00000000000000000000.index/and/even/more` can be divided.

```{drawing} shapes.py:wide
A caption below a drawing that is wider than the screen of a phone.
```

```{step-by-step} shapes.py:steps
A log
```

```{settings} hmb.broker.config.broker:TOPIC_KEYS
:only: message.timestamp.before.max.ms remote.storage.enable
```
"""
SHAPES = """
from drawing import Drawing
from step_by_step import Step

def wide(words="a box"):
    drawing = Drawing(900, 100, "a box")
    drawing.box(10, 10, 880, 50, words)
    return drawing

def steps():
    return [Step(f"The log has {number} records.", wide(f"{number} records")) for number in range(3)]
"""
CONF = """
import tones
extensions = ["myst_parser", "code_words", "drawing", "step_by_step", "settings"]
html_theme = "furo"
html_static_path = [%s]
html_css_files = ["hmb.css"]
html_theme_options = {"light_css_variables": tones.css_variables(tones.ON_LIGHT)}
"""


@pytest.fixture(scope="module")
def phone(tab: ChromiumTab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromiumTab]:
    """Build a page with the theme of the book, and open it on a phone."""
    from sphinx.testing.util import SphinxTestApp

    source = tmp_path_factory.mktemp("book")
    (source / "conf.py").write_text(CONF % json.dumps(str(DOCS / "_static")))
    (source / "index.md").write_text(PAGE)
    (source / "shapes.py").write_text(SHAPES)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXTENSIONS))
        app = SphinxTestApp("html", srcdir=source)
        app.build()
        assert app.warning.getvalue() == ""
        app.cleanup()
    tab.look(phone=True)
    tab.open((Path(app.outdir) / "index.html").as_uri())
    yield tab
    assert tab.problems() == []


def test_only_drawings_and_tables_scroll_sideways(phone: ChromiumTab) -> None:
    assert phone.run("document.documentElement.scrollWidth") == 390


def test_the_caption_of_a_wide_drawing_stays_when_a_reader_scrolls(phone: ChromiumTab) -> None:
    places: Any = phone.run(
        """(() => {
        const figure = document.querySelector("figure.drawing"), places = [];
        for (const scrolled of [0, 100]) {
          figure.scrollLeft = scrolled;
          places.push([...figure.children].map((part) => Math.round(part.getBoundingClientRect().left)));
        }
        return places;
        })()"""
    )
    (drawing, caption), (drawing_after, caption_after) = places
    assert drawing_after == drawing - 100
    assert caption_after == caption


def test_a_word_of_code_is_not_divided(phone: ChromiumTab) -> None:
    divided: Any = phone.run(
        """(() => {
        const paragraph = document.querySelector("section > p");
        const words = [...paragraph.querySelectorAll("code:not(.divided) .pre")];
        const isOnLine = (word) => { // The comma after the word, if any, is in the same line.
          const next = word.parentElement.nextSibling, range = document.createRange();
          if (word.nextSibling || !/^[,.:]/.test(next.data)) return true;
          range.setStart(next, 0);
          range.setEnd(next, 1);
          return Math.abs(range.getBoundingClientRect().bottom - word.getBoundingClientRect().bottom) < 10;
        };
        return [...Array(150).keys()].flatMap((more) => {
          paragraph.style.width = `${200 + more}px`;
          return words.filter((word) => word.getClientRects().length > 1 || !isOnLine(word));
        }).map((word) => word.textContent);
        })()"""
    )
    assert divided == []


def test_the_name_of_a_setting_is_divided_after_a_dot(phone: ChromiumTab) -> None:
    parts: Any = phone.run(
        """[...document.querySelectorAll("div.settings tbody td:first-child code")].map((name) =>
        [...name.querySelectorAll(".pre")].map((part) => {
          const range = document.createRange();
          range.selectNodeContents(part);
          return [part.textContent, range.getClientRects().length];
        }))"""
    )
    assert parts == [
        [["message.", 1], ["timestamp.", 1], ["before.max.ms", 1]],
        [["remote.", 1], ["storage.", 1], ["enable", 1]],
    ]


def test_a_heading_has_no_empty_line(phone: ChromiumTab) -> None:
    empty: Any = phone.run(
        """(() => {
        const heading = document.querySelector("h1"), link = heading.querySelector(".headerlink");
        return [...Array(150).keys()].filter((more) => {
          heading.style.width = `${200 + more}px`;
          const height = heading.offsetHeight;
          link.remove();
          const without = heading.offsetHeight;
          heading.append(link);
          return height !== without;
        });
        })()"""
    )
    assert empty == []


def test_the_buttons_show_the_steps_one_after_the_other(phone: ChromiumTab) -> None:
    shown: Any = phone.run(
        """(() => {
        const steps = document.querySelector(".step-by-step"), shown = [];
        const [back, next] = steps.querySelectorAll("button");
        for (const button of [next, next, next, back]) {
          button.click();
          const [step] = [...steps.querySelectorAll("figure")].filter((each) => each.offsetHeight);
          shown.push([steps.querySelector(".steps-controls span").textContent, step.querySelector("text").textContent]);
        }
        return shown;
        })()"""
    )
    assert shown == [
        ["step 2 of 3", "1 records"],
        ["step 3 of 3", "2 records"],
        ["step 3 of 3", "2 records"],
        ["step 2 of 3", "1 records"],
    ]
