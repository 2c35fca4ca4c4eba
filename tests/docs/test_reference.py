"""The reference of the library, which autodoc makes from docstrings and signatures, is readable."""

from __future__ import annotations

import re

from tests.docs.conftest import BuildPages

PAGE = """# Spouts

```{eval-rst}
.. autoclass:: hmb.hailstorm.Spout
.. autoclass:: hmb.hailstorm.RunResult
```
"""


def test_a_signature_has_short_types_and_names_of_functions(build_pages: BuildPages) -> None:
    app = build_pages({"index": PAGE}, "sphinx.ext.autodoc", "sphinx_click", "docstrings", builder="html")
    html = (app.outdir / "index.html").read_text()
    spout, result = (re.sub("<[^>]*>", "", part) for part in re.findall(r"<dt class=\"sig.*?</dt>", html, re.DOTALL))
    assert "convert: " in spout and "= value_text, offset: " in spout
    assert "late: dict" in result and "= ..., dead: " in result
    assert not re.search("~|&lt;", spout + result)


def test_the_fields_of_a_class_are_a_table(build_pages: BuildPages) -> None:
    app = build_pages({"index": PAGE}, "sphinx.ext.autodoc", "sphinx_click", "docstrings", builder="html")
    html = (app.outdir / "index.html").read_text()
    (table,) = [text for text in re.findall("<pre>.*?</pre>", html, re.DOTALL) if "allowed_lateness" in text]
    names = re.findall(r"^(?:<pre><span></span>)?(\w+)  +\S", table, re.MULTILINE)
    assert names[:2] == ["topic", "convert"] and len(names) == 8
