"""Tables of what was measured: from files of bench/results to a page, so that no number is copied by hand.

    ```{measured} clients-20261121-215731.json
    ```

The table that a file gives depends on its suite; under it stands the file, with its commit, command and machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hmb.bench.turns import Spread

RESULTS = Path(__file__).parents[2] / "bench" / "results"
Samples = Sequence[dict[str, Any]]
Rows = list[list[str]]  # the first is the heading


class Measured(SphinxDirective):
    """The table of one file, and where it comes from."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = RESULTS / self.arguments[0]
        self.env.note_dependency(str(path))
        try:
            document = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise self.error(f"{path.name}: {error}") from error
        samples = document["samples"]
        rows = TABLES[samples[0]["suite"]](samples)
        return [_table(rows), self._source(path.name, document)]

    def _source(self, name: str, document: dict[str, Any]) -> nodes.Node:
        machine, commit = document["machine"], (document["commit"] or "")[:10]
        text = f"{name}: {document['command']}, commit {commit}; {machine['cores']} cores, {machine['cpu']}"
        return nodes.caption("", text)


def figures(*names: str) -> Callable[[Samples], Rows]:
    """A row for each broker, client and set of parameters: the median and the spread of these figures."""

    def rows(samples: Samples) -> Rows:
        groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
        for each in samples:
            told = ", ".join(f"{name} {value}" for name, value in each["parameters"].items())
            groups.setdefault((each["broker"], each["client"], told), []).append(each["figures"])
        body = [
            [*group, *(str(Spread(tuple(run[name] for run in runs))) if name in runs[0] else "-" for name in names)]
            for group, runs in groups.items()
        ]
        return [["broker", "client", "", *names], *body]

    return rows


TABLES: dict[str, Callable[[Samples], Rows]] = {
    "clients produce": figures("records_per_second", "client_cpu_us_per_record"),  # and "clients consume" with it
}


def _table(rows: Rows) -> nodes.table:
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=1) for _ in rows[0]]
    group += nodes.thead("", _row(rows[0]))
    group += nodes.tbody("", *map(_row, rows[1:]))
    return nodes.table("", group)


def _row(cells: Iterable[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
