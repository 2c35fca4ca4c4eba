"""Tests of the directive `page-picture`, and of the pictures that the book shows."""

from __future__ import annotations

import re
from itertools import product

from tests.docs.conftest import EXTENSIONS, BuildPages

DOCS = EXTENSIONS.parent
SHOWN = re.compile(r"^```{page-picture} (\S+)\n:alt: (.+)$", re.MULTILINE)
PAGE = """# A chapter

```{page-picture} look-up
:alt: Three steps.

The *look-up* on the page.
```
"""


def test_the_page_has_a_light_and_a_dark_picture_and_one_caption(build_pages: BuildPages) -> None:
    (picture, *_) = sorted((DOCS / "pictures").glob("look-up-light.png"))
    pages = {"index": PAGE, "pictures/look-up-light.png": "", "pictures/look-up-dark.png": ""}
    assert picture.exists()
    app = build_pages(pages, "page_picture", builder="html")
    html = (app.outdir / "index.html").read_text()
    for colours in ("light", "dark"):
        assert re.search(rf'<img alt="Three steps\." class="only-{colours}" src="[^"]*look-up-{colours}\.png"', html)
    assert html.count("<figcaption>") == 1 and "The <em>look-up</em> on the page." in html


def test_a_book_for_an_e_reader_has_only_the_light_picture(build_pages: BuildPages) -> None:
    pages = {"index": PAGE, "pictures/look-up-light.png": "", "pictures/look-up-dark.png": ""}
    app = build_pages(pages, "page_picture", builder="epub")
    html = (app.outdir / "index.xhtml").read_text()
    assert "look-up-light.png" in html and "look-up-dark.png" not in html


def test_each_chapter_shows_an_existing_picture_of_its_view() -> None:
    chapters = {path: SHOWN.findall(path.read_text()) for path in DOCS.rglob("*.md") if "_build" not in path.parts}
    shown = {name: path for path, found in chapters.items() for name, _ in found}
    files = {f"{name}-{colours}.png" for name, colours in product(shown, ("light", "dark"))}
    assert files == {path.name for path in (DOCS / "pictures").iterdir()}
    assert {path.stem for path in shown.values()} >= {"log", "groups", "produce", "retention", "compaction"}
    for path in shown.values():
        assert "`hmb broker --ui`" in path.read_text() and "`#/" in path.read_text(), path
