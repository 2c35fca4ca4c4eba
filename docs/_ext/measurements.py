"""Shows the results of benchmarks as tables and charts on the pages of the book.

The first two blocks show benchmarks as tables, the third shows charts, and the last shows results of a bachelor thesis:
    ```{measured} start
    ```
    ```{measured} clients-20261121-215731.json
    ```
    ```{measured-plot} growth
    ```
    ```{thesis-figures}
    ```

The directive `measured` shows the same tables as the command `hmb bench show`. The directive `measured-plot`
shows the same charts as the command `hmb bench plot`.

The argument of the directives `measured` and `measured-plot` is the name of a file in bench/results, or the name of a
benchmark, for example `growth`. For `growth`, the directive shows the newest result file of this benchmark. If the
benchmark has no result file yet, the page states this.

Below the tables or charts, the directives `measured` and `measured-plot` show a caption with the result file, the
benchmark command, the commit of HMB, and the machine.

The directive `thesis-figures` shows benchmark results of the bachelor thesis on which HMB is based. The file
bench/thesis/cells.py contains these results.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hmb.bench.errors import InvalidSamples
from hmb.bench.report.origin import Origin, view_of
from hmb.bench.report.samples import Sample, read, samples_of
from hmb.bench.report.tables import Table
from hmb.bench.report.view import SuiteReport
from hmb.bench.thesis import cells
from hmb.bench.thesis import tables as thesis_tables

CSS_DPI = 96  # CSS pixels in an inch
SMALLEST_SCALE = 0.55  # The smallest scale of a chart on a narrow screen. A reader scrolls to see the rest.
RESULTS = Path(__file__).parents[2] / "bench" / "results"


class Results(SphinxDirective, ABC):
    """A directive that shows tables or charts of one result file, and a caption below them.

    The caption names the file, the command that measured the results, the commit of HMB, and the machine.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        # RESULTS is a folder. If a page depends on a folder, Sphinx rebuilds the page in every build. The page
        # therefore always shows the newest results.
        self.env.note_dependency(str(RESULTS))
        path = self._path(self.arguments[0])
        if path is None:
            text = f"No run of hmb bench {self.arguments[0]} is published yet."
            return [nodes.paragraph("", text)]
        try:
            document = read(path)
        except (OSError, InvalidSamples) as error:
            raise self.error(f"{path.name}: {error}") from error
        view = view_of(Origin.of(document).suite)
        return [*self.shown(view, samples_of(document)), _source(path.name, document)]

    def _path(self, name: str) -> Path | None:
        """Return the path of a result file. `name` is the name of the file, or the name of a benchmark.

        For a benchmark, return the path of its newest result file, or None if no such file exists.
        """
        if name.endswith(".json"):
            return RESULTS / name
        return max(RESULTS.glob(f"{name}-2*.json"), default=None)

    @abstractmethod
    def shown(self, view: SuiteReport, samples: Sequence[Sample]) -> Sequence[nodes.Node]:
        """Return tables or charts that show `samples`, the results of one benchmark."""


class Measured(Results):
    """The directive `measured`, which shows the results of one benchmark as tables."""

    def shown(self, view: SuiteReport, samples: Sequence[Sample]) -> Sequence[nodes.Node]:
        return [table_node(table) for table in view.tables(samples)]


class MeasuredPlot(Results):
    """The directive `measured-plot`, which shows the results of one benchmark as charts."""

    def shown(self, view: SuiteReport, samples: Sequence[Sample]) -> Sequence[nodes.Node]:
        return [_picture(figure, name) for name, figure in view.charts(samples).items()]


class ThesisFigures(SphinxDirective):
    """The directive `thesis-figures`, which shows tables with benchmark results of the bachelor thesis."""

    def run(self) -> list[nodes.Node]:
        for module in (cells, thesis_tables):
            self.env.note_dependency(str(module.__file__))
        return [table_node(table) for table in thesis_tables.of_the_thesis()]


def table_node(table: Table) -> nodes.table:
    """Return `table` as an object that Sphinx can show on a page."""
    heading, *rows = table.rows
    group = nodes.tgroup(cols=len(heading))
    group += [nodes.colspec(colwidth=1) for _ in heading]
    group += nodes.thead("", _row(heading))
    group += nodes.tbody("", *map(_row, rows))
    title = [nodes.title("", table.title)] if table.title else []
    return nodes.table("", *title, group, classes=["measured", "colwidths-auto"])


def _row(texts: Iterable[str]) -> nodes.row:
    # A browser may begin a new line after the hyphen of "->", so the page shows a real arrow.
    shown = (text.replace("->", "\N{RIGHTWARDS ARROW}") for text in texts)
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in shown))


def _picture(figure: Any, name: str) -> nodes.raw:
    """Return a chart as an SVG element of the page. Each build of the page draws the chart again."""
    import matplotlib

    picture = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):  # The salt makes the ids in the picture equal in every build.
        figure.savefig(picture, format="svg", metadata={"Date": None})
    svg = picture.getvalue()
    least = figure.get_figwidth() * CSS_DPI * SMALLEST_SCALE
    svg = svg[svg.index("<svg") :].replace("<svg", f'<svg style="--least-width:{least:.0f}px"', 1)
    return nodes.raw("", f'<div class="measured-plot">{svg}</div>', format="html")


def _source(name: str, document: dict[str, Any]) -> nodes.caption:
    """Return the caption below tables and charts: the result file, the command, the commit and the machine."""
    commit, *changes = (document["commit"] or "unknown").split(maxsplit=1)
    # `at` contains the commit's first ten digits. If the benchmark ran with uncommitted changes, `at` ends with "and
    # changes".
    at = " ".join([commit[:10], *changes])
    machine = document["machine"]
    place = f", commit {at}; {machine['cores']} cores, {machine['cpu']}"
    return nodes.caption("", "", nodes.Text(f"{name}: "), nodes.literal(text=document["command"]), nodes.Text(place))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    app.add_directive("measured-plot", MeasuredPlot)
    app.add_directive("thesis-figures", ThesisFigures)
    return {"parallel_read_safe": True}
