"""The directive `meanings` shows a table of options. A dictionary in the code contains the meaning of each option.

The argument of the directive `meanings` names a module and one of its dictionaries. For example, the next lines
show a table of the options of HMB's data source for Spark:
```{meanings} hmb.spark.option_names:SOURCE_OPTIONS
```
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from tables import TableDirective


class Meanings(TableDirective):
    """The directive `meanings`, which shows a table. Each row contains the name and the meaning of one option."""

    def run(self) -> list[nodes.Node]:
        meanings, source = self.table()
        rows = [f"| `{option}` | {_cell(meaning)} |" for option, meaning in meanings.items()]
        node = nodes.container()
        table = ["| option | |", "| --- | --- |", *rows]
        self.state.nested_parse(StringList(table, source=source), 0, node)
        return node.children


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("meanings", Meanings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
