"""Tables and charts of what was measured: from files of bench/results to a page, so that no number is copied by hand.

    ```{measured} thesis
    ```
    ```{measured} clients-20261121-215731.json
    ```
    ```{measured-plot} growth
    ```

The argument is a file, or a suite, of which the newest file is taken; a page says so where there is none yet.  A table
is that which the suite's command prints (`tables` in its module of bench/), a chart that of `hmb bench plot`; under
them stands the file, with its commit, command and machine.

    ```{thesis-figures}
    ```

is what the thesis measured, from bench/thesis/cells.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hmb.bench.report.samples import read
from hmb.bench.report.show import tables_of
from hmb.bench.report.tables import Table
from hmb.bench.thesis import cells
from hmb.bench.thesis import tables as thesis_tables

RESULTS = Path(__file__).parents[2] / "bench" / "results"


class Results(SphinxDirective):
    """What is shown of one file, and where it comes from."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RESULTS))  # which is no file: the page is made anew in every build
        path = self._path(self.arguments[0])
        if path is None:
            text = f"No run of hmb bench {self.arguments[0]} is published yet."
            return [nodes.paragraph("", text)]
        try:
            document = read(path)
        except (OSError, ValueError) as error:
            raise self.error(f"{path.name}: {error}") from error
        return [*self.shown(document), _source(path.name, document)]

    def _path(self, name: str) -> Path | None:
        """The file of that name, or the newest of a suite, whose names end with date and time."""
        if name.endswith(".json"):
            return RESULTS / name
        return max(RESULTS.glob(f"{name}-2*.json"), default=None)

    def shown(self, document: dict[str, Any]) -> Sequence[nodes.Node]:
        raise NotImplementedError


class Measured(Results):
    """The tables of a suite."""

    def shown(self, document: dict[str, Any]) -> Sequence[nodes.Node]:
        return [table_node(table) for table in tables_of(document)]


class MeasuredPlot(Results):
    """The charts of a suite, drawn into the page."""

    def shown(self, document: dict[str, Any]) -> Sequence[nodes.Node]:
        from hmb.bench.report import plot

        return [_picture(figure, name) for name, figure in plot.figures_of(document).items()]


class ThesisFigures(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        for module in (cells, thesis_tables):
            self.env.note_dependency(str(module.__file__))
        return [table_node(table) for table in thesis_tables.of_the_thesis()]


def table_node(table: Table) -> nodes.table:
    heading, *rows = table.rows
    group = nodes.tgroup(cols=len(heading))
    group += [nodes.colspec(colwidth=1) for _ in heading]
    group += nodes.thead("", _row(heading))
    group += nodes.tbody("", *map(_row, rows))
    title = [nodes.title("", table.title)] if table.title else []
    return nodes.table("", *title, group, classes=["measured", "colwidths-auto"])


def _row(texts: Iterable[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in texts))


def _picture(figure: Any, name: str) -> nodes.raw:
    """The chart as SVG in the page itself: no file that could be of another run."""
    import matplotlib

    picture = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):  # the same picture has the same names inside
        figure.savefig(picture, format="svg", metadata={"Date": None})
    svg = picture.getvalue()
    return nodes.raw("", f'<div class="measured-plot">{svg[svg.index("<svg") :]}</div>', format="html")


def _source(name: str, document: dict[str, Any]) -> nodes.caption:
    machine, (commit, *changes) = document["machine"], (document["commit"] or "unknown").split(maxsplit=1)
    at = " ".join([commit[:10], *changes])  # "and changes", where the files were not those of the commit
    text = f"{name}: {document['command']}, commit {at}; {machine['cores']} cores, {machine['cpu']}"
    return nodes.caption("", text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    app.add_directive("measured-plot", MeasuredPlot)
    app.add_directive("thesis-figures", ThesisFigures)
    return {"parallel_read_safe": True}
