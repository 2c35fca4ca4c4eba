"""Notebooks run when the pages are built, if Spark can run here; if not, each says so at its top and shows its code.

Spark wants PySpark and a Java (`pip install 'hmb[spark]'` brings both), and the pages are to be built without them
as well.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

FOLDER = "notebooks/"
NOTE = """
:::{{note}}
This page was built where its code could not run: {problem}. So there are no results below. To see them, install what is
missing and build the pages again, or run the notebook yourself (`hmb notebooks`).
:::
"""


def problem() -> str | None:
    """Why notebooks cannot run."""
    for module in ("pyspark", "pyarrow", "pandas", "matplotlib"):
        if find_spec(module) is None:
            return f"{module} is not installed (`pip install 'hmb[spark]'`)"
    from hmb.spark.environment import SparkUnavailableError
    from hmb.spark.sessions import check

    try:
        check()
    except SparkUnavailableError as missing:
        return str(missing)
    return None


def configure(app: Sphinx, config: Config) -> None:
    app.add_config_value("notebooks_problem", problem(), "env")
    if config.notebooks_problem:
        config.nb_execution_excludepatterns = [*config.nb_execution_excludepatterns, f"{FOLDER}*.md"]


def say_so(app: Sphinx, name: str, source: list[str]) -> None:
    """Below the heading."""
    if app.config.notebooks_problem and name.startswith(FOLDER) and "file_format: mystnb" in source[0]:
        before, heading, after = source[0].partition("\n# ")
        title, rest = after.split("\n", 1)
        source[0] = before + heading + title + "\n" + NOTE.format(problem=app.config.notebooks_problem) + rest


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", configure, priority=100)  # before myst-nb reads its settings
    app.connect("source-read", say_so)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
