"""A small book that Sphinx builds in a temporary folder, for the tests of the documentation's extensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"
BuildPages = Callable[..., Any]


@pytest.fixture
def build_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BuildPages]:
    """Return a function that builds pages with Sphinx, and returns the Sphinx application.

    The function expects a dict from the names of the pages to their Markdown texts, and the names of the Sphinx
    extensions to use.
    """
    pytest.importorskip("sphinx", reason="Sphinx is not installed; `make docs` installs it")
    from sphinx.testing.util import SphinxTestApp

    monkeypatch.syspath_prepend(str(EXTENSIONS))
    apps = []

    def build(pages: dict[str, str], *extensions: str, builder: str = "dummy") -> Any:
        source = tmp_path / f"source-{len(apps)}"
        for name, text in pages.items():
            path = source / (name if "." in name else f"{name}.md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (source / "conf.py").write_text(f"extensions = {['myst_parser', *extensions]}\nsmartquotes = False\n")
        apps.append(SphinxTestApp(builder, srcdir=source))
        apps[-1].build()
        return apps[-1]

    yield build
    for app in apps:
        app.cleanup()
