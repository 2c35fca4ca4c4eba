"""The code's own words in these pages: the directive `essay`, and docstrings that autodoc can read.

    ```{essay} hmb.storage.segment
    ```

A module begins with a short essay; the directive shows it.  Docstrings are written to be read in the code: a block that
stands further in is text to be shown as it is, whether or not a double colon announces it, and so are lines in columns.
"""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

COLUMNS = re.compile(r"\S.*[^\s.:;?!] {2,}\S")  # two spaces follow the end of a sentence, too
ITEM = re.compile(r"\s*([-*+]|\d+[.)]) ")


def as_markdown(docstring: str) -> str:
    """A docstring, which is nearly Markdown."""
    return re.sub(r"::$", ":", docstring, flags=re.MULTILINE)


def indent_columns(lines: list[str]) -> list[str]:
    """Move paragraphs of which every line has columns further in."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line)
        else:
            paragraphs += [[line], []]
    for paragraph in paragraphs:
        if len(paragraph) > 1 and all(map(COLUMNS.match, paragraph)):
            paragraph[:] = ["    " + line for line in paragraph]
    return [line for paragraph in paragraphs for line in paragraph]


def announce_blocks(lines: list[str]) -> list[str]:
    """In reStructuredText a block to be shown as it is needs a double colon: put one before each that has none."""
    announced: list[str] = []
    said = ""  # the last line with text, outside of a block
    for number, line in enumerate(lines):
        is_indented = line.startswith("    ")
        begins = is_indented and number > 0 and not lines[number - 1].strip()
        if begins and not said.endswith("::") and not ITEM.match(said) and not said.startswith(" "):
            announced += ["::", ""]
            said = "::"
        elif line.strip() and not is_indented:
            said = line
        announced.append(line)
    return announced


class Essay(SphinxDirective):
    """The docstring of a module, as Markdown."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        found = find_spec(self.arguments[0])
        assert found is not None and found.origin is not None, f"there is no module {self.arguments[0]}"
        self.env.note_dependency(found.origin)
        # Not imported: a module of hmb.spark wants PySpark, which need not be here.
        docstring = ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8")))
        text = as_markdown(docstring or "")
        node = nodes.container(classes=["essay"])
        self.state.nested_parse(StringList(text.splitlines(), source=found.origin), 0, node)
        return node.children


def process_docstring(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """For autodoc."""
    lines[:] = announce_blocks(indent_columns(lines))


def process_options(_app: Sphinx, _context: Any, lines: list[str]) -> None:
    """For sphinx-click: a help text is no reStructuredText, in which a backslash would take the next character."""
    lines[:] = [line.replace("\\", "\\\\") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("essay", Essay)
    app.connect("sphinx-click-process-options", process_options)
    app.connect("autodoc-process-docstring", process_docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
