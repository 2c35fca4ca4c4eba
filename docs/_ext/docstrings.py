"""Sphinx uses this module to show the docstrings of HMB's code on the pages of the book.

An author writes these two lines into a page to show the docstring of the module `hmb.storage.segment`:
    ```{essay} hmb.storage.segment
    ```

The docstring of a module is a short essay. The directive `essay` shows this docstring on a page. The page can also show
only a part of the docstring: the part begins at the text in the option `start-at`, and ends before the text in the
option `end-before`.

Autodoc shows docstrings on pages, and expects reStructuredText. HMB's docstrings are written for readers of the code,
so they do not follow all rules of reStructuredText. This module therefore changes a docstring in three ways before
autodoc reads it:
- The module adds an empty line between a sentence that ends with a colon and the list, table or drawing after it.
- The module puts a double colon before each indented block. The block then becomes literal text on the page.
- The module indents each table whose columns are separated by spaces. The table then becomes literal text, too.
"""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

COLUMNS = re.compile(r"\S.*[^\s.:;?!] {2,}\S")  # Two spaces after the end of a sentence do not begin a column.
ITEM = re.compile(r"\s*([-*+]|\d+[.)]) ")


def as_markdown(docstring: str) -> str:
    """Return a docstring as Markdown. A double colon at the end of a line becomes a single colon."""
    return "\n".join(separate_blocks(re.sub(r"::$", ":", docstring, flags=re.MULTILINE).splitlines()))


def part_of(text: str, start_at: str, end_before: str) -> str:
    """Return the part of `text` that begins with the string `start_at` and ends before `end_before`.

    If `start_at` is "", the part begins at the beginning of the text. If the string `end_before` is "", the part
    ends at the end of the text.
    """
    begin = text.index(start_at)
    return text[begin : text.index(end_before, begin) if end_before else None]


def separate_blocks(lines: list[str]) -> list[str]:
    """Return a copy of `lines` with an empty line before each list, table or drawing that follows a colon."""
    separated: list[str] = []
    for line in lines:
        if separated and separated[-1].rstrip().endswith(":") and _begins_block(line):
            separated.append("")
        separated.append(line)
    return separated


def _begins_block(line: str) -> bool:
    return bool(ITEM.match(line) or line.startswith("    ") or COLUMNS.match(line))


def indent_columns(lines: list[str]) -> list[str]:
    """Return a copy of `lines` in which each table is indented by four spaces.

    In a table, two or more spaces separate the columns. The page shows all spaces of an indented table. Without the
    indentation, the page would show only one space between two columns.

    The function does not indent lists, because the page would show an indented list as literal text.
    """
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line)
        else:
            paragraphs += [[line], []]
    for paragraph in paragraphs:
        if len(paragraph) > 1 and all(map(COLUMNS.match, paragraph)) and not ITEM.match(paragraph[0]):
            paragraph[:] = ["    " + line for line in paragraph]
    return [line for paragraph in paragraphs for line in paragraph]


def announce_blocks(lines: list[str]) -> list[str]:
    """Add a line `::` before each indented block without `::`, because reStructuredText requires it."""
    announced: list[str] = []
    last = ""  # the last line that has text and is not in an indented block
    for number, line in enumerate(lines):
        is_indented = line.startswith("    ")
        begins = is_indented and number > 0 and not lines[number - 1].strip()
        if begins and not last.endswith("::") and not ITEM.match(last) and not last.startswith(" "):
            announced += ["::", ""]
            last = "::"
        elif line.strip() and not is_indented:
            last = line
        announced.append(line)
    return announced


class Essay(SphinxDirective):
    """The directive `essay`, which shows the docstring of a module."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "start-at": directives.unchanged_required,
        "end-before": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        found = find_spec(self.arguments[0])
        assert found is not None and found.origin is not None, f"no module {self.arguments[0]} exists"
        self.env.note_dependency(found.origin)
        # The directive reads the docstring from the module's file, and does not import the module. An import can fail:
        # for example, `import hmb.spark` fails if PySpark is missing.
        docstring = ast.get_docstring(ast.parse(Path(found.origin).read_text(encoding="utf-8")))
        start_at, end_before = self.options.get("start-at", ""), self.options.get("end-before", "")
        text = as_markdown(part_of(docstring or "", start_at, end_before))
        node = nodes.container(classes=["essay"])
        self.state.nested_parse(StringList(text.splitlines(), source=found.origin), 0, node)
        return node.children


def process_docstring(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring, so that autodoc can show them.

    Python gives each field of a named tuple a docstring, for example "Alias for field number 0". Such a docstring does
    not help a reader, so the page shows only the name and the type of the field.
    """
    if lines and re.fullmatch(r"Alias for field number \d+", lines[0]):
        lines.clear()
    lines[:] = announce_blocks(indent_columns(separate_blocks(lines)))


def process_signature(
    _app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Change a signature, so that Sphinx can read the default values of its parameters.

    For example, the default `<function parse>` becomes `parse`. The default `<factory>` becomes `...`. Python
    writes `<factory>` if a dataclass creates a new default value for each object.

    If Sphinx cannot read a signature, the page shows it without links, and with the full names of all types.
    """
    if signature:
        signature = re.sub(r"<function ([\w.]+)>", r"\1", signature).replace("<factory>", "...")
    return signature, returned


def process_options(_app: Sphinx, _context: Any, lines: list[str]) -> None:
    """Double each backslash in the help text of a command: reStructuredText shows two backslashes as one."""
    lines[:] = [line.replace("\\", "\\\\") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("essay", Essay)
    app.connect("sphinx-click-process-options", process_options)
    app.connect("autodoc-process-docstring", process_docstring)
    app.connect("autodoc-process-signature", process_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
