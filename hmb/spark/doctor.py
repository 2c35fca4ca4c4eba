"""What Spark needs and what of it is there: `hmb spark doctor`.

`environment` knows what is needed; `session` refuses for the first thing that is missing; here all of it is told, each
with its one-line fix.  What is no obstacle for `session` may be one for a Spark that is started in another way: such
a thing is told without being a fault.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from hmb.spark.environment import INSTALL, Finding, findings


def examine() -> list[Finding]:
    """All that matters; those with a problem keep `hmb.spark.session()` from working."""
    return [Finding("python", f"{sys.version.split()[0]} at {sys.executable}"), *findings(), _source(), _workers()]


def _source() -> Finding:
    """Whether PySpark will find the data source by itself, in sessions that are not ours."""
    spec = find_spec("pyspark_hmb")
    if spec is None or spec.origin is None:
        return Finding(
            "source", "", "the module pyspark_hmb, by which PySpark finds format('hmb'), is missing", INSTALL
        )
    folder = Path(spec.origin).parent.parent
    if folder in map(Path, sys.path):
        return Finding("source", "format('hmb') registers itself")
    hint = f"with hmb.spark.session(); other sessions do with PYTHONPATH={folder}"
    return Finding("source", f"format('hmb') is registered {hint}")


def _workers() -> Finding:
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen in (None, sys.executable):
        return Finding("workers", f"run {sys.executable}")
    fix = f"unset PYSPARK_PYTHON, or export PYSPARK_PYTHON={sys.executable}"
    return Finding("workers", str(chosen), "PYSPARK_PYTHON names another Python than this one", fix)
