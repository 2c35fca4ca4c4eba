"""Check everything that Spark needs on this machine, for the command `hmb spark doctor`.

The module `environment` finds Java and the Python packages. `hmb.spark.session()` reports only the first missing
package. The doctor reports all missing packages, each with the command that installs it.

Spark sessions that another program starts need two more things. PySpark must find the data source `hmb`, and Spark's
workers must run the right Python interpreter. The doctor checks both. If such a session needs one more setting, the
doctor prints this setting.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from hmb.spark.local.environment import INSTALL, Finding, findings


def examine() -> list[Finding]:
    """Return the results of all checks. `hmb.spark.session()` works only if no result contains a problem."""
    return [Finding("python", f"{sys.version.split()[0]} at {sys.executable}"), *findings(), _source(), _workers()]


def _source() -> Finding:
    """Check whether PySpark finds the data source in sessions that `hmb.spark.session()` did not start."""
    spec = find_spec("pyspark_hmb")
    if spec is None or spec.origin is None:
        return Finding(
            "source", "", "the module pyspark_hmb, through which PySpark finds format('hmb'), is missing", INSTALL
        )
    folder = Path(spec.origin).parent.parent
    if folder in map(Path, sys.path):
        return Finding("source", "format('hmb') registers itself")
    hint = f"other sessions need PYTHONPATH={folder}"
    return Finding("source", f"hmb.spark.session() registers format('hmb'); {hint}")


def _workers() -> Finding:
    """Check whether Spark's workers run the same Python interpreter as this process."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen in (None, sys.executable):
        return Finding("workers", f"run {sys.executable}")
    fix = f"unset PYSPARK_PYTHON, or export PYSPARK_PYTHON={sys.executable}"
    return Finding("workers", str(chosen), "PYSPARK_PYTHON names a different Python than this one", fix)
