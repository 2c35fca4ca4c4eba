"""Tables that the code has: the directive `meanings` shows a dictionary of names and what each is for.

```{meanings} hmb.spark.option_names:SOURCE_OPTIONS
```
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Meanings(SphinxDirective):
    """See the module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name, _, variable = self.arguments[0].partition(":")
        module = import_module(name)
        assert module.__file__ is not None
        self.env.note_dependency(module.__file__)
        rows = [f"| `{option}` | {_cell(meaning)} |" for option, meaning in getattr(module, variable).items()]
        node = nodes.container()
        table = ["| option | |", "| --- | --- |", *rows]
        self.state.nested_parse(StringList(table, source=module.__file__), 0, node)
        return node.children


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("meanings", Meanings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
