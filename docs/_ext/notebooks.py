"""A Sphinx extension that leaves out the results of Spark notebooks if this machine cannot run Spark.

The notebooks that read topics with Spark need PySpark and Java. `pip install 'hmb[spark]'` installs both. If
PySpark or Java is missing, `make docs` still works, but the pages of these notebooks show the code without results. A
note at the top of each of these pages names the missing part.

This extension also gives each plot of a lab a text alternative, for readers who cannot see the plot. The text consists
of the sentences of the page that describe the plot.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

log = logging.getLogger(__name__)

SPARK_PAGE = re.compile(r"labs/lab-\d\d-\w+")  # labs.py writes these pages
SPARK_PAGES = "labs/lab-??-*.md"
LAB_PAGE = re.compile(r"labs/lab-\d\d.*")
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
ABOUT_PLOT = re.compile(r"\b(?:(?<!each )plots?|histogram|draws)\b")  # a word in a sentence about a plot
NOTE = """
:::{{note}}
This page has no results, because its code could not run during the build: {problem}. Install the missing part and build
the pages again, or run the notebook yourself (`hmb lab start`).
:::
"""


def problem() -> str | None:
    """Return the reason why notebooks that need Spark cannot run, or None if they can run."""
    for module in ("pyspark", "pyarrow", "pandas", "matplotlib"):
        if find_spec(module) is None:
            return f"{module} is not installed (`pip install 'hmb[spark]'`)"
    from hmb.spark.local.environment import SparkUnavailableError
    from hmb.spark.local.sessions import check

    try:
        check()
    except SparkUnavailableError as missing:
        return str(missing)
    return None


def configure(app: Sphinx, config: Config) -> None:
    """If the notebooks that need Spark cannot run on this machine, tell Sphinx not to run them."""
    app.add_config_value("notebooks_problem", problem(), "env")
    if config.notebooks_problem:
        config.nb_execution_excludepatterns = [*config.nb_execution_excludepatterns, SPARK_PAGES]


def add_note(app: Sphinx, name: str, source: list[str]) -> None:
    """If the page is a notebook that could not run, insert the constant `NOTE` (a warning) below the page's heading.

    `source` is a list with one string, the text of the page.
    """
    if app.config.notebooks_problem and SPARK_PAGE.fullmatch(name):
        before, heading, after = source[0].partition("\n# ")
        title, rest = after.split("\n", 1)
        source[0] = before + heading + title + "\n" + NOTE.format(problem=app.config.notebooks_problem) + rest


def describe_plots(app: Sphinx, document: nodes.document) -> None:
    """Give each plot of a lab page a text alternative: the sentences of the page that describe the plot.

    The sentences become the attribute `alt` of the plot's image. A screen reader reads this attribute aloud to a
    blind person. If no sentence describes a plot, log a warning.
    """
    if not LAB_PAGE.fullmatch(app.env.docname):
        return
    plots: list[nodes.image] = []
    before = ""
    for node in document.findall(lambda each: isinstance(each, nodes.paragraph | nodes.image)):
        if isinstance(node, nodes.image):
            plots.append(node)
            if before:
                node["alt"], before = before, ""
        elif found := " ".join(each for each in SENTENCE_END.split(node.astext()) if ABOUT_PLOT.search(each)):
            if plots and "alt" not in plots[-1]:
                plots[-1]["alt"] = found
            else:
                before = found
    for plot in plots:
        if "alt" not in plot:
            log.warning("no sentence describes the plot", location=plot)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", configure, priority=100)  # `configure` runs before myst-nb reads its settings.
    app.connect("source-read", add_note)
    app.connect("doctree-read", describe_plots)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
