"""Check everything that Spark needs on this machine, for the command `hmb spark doctor`.

The module `environment` finds Java and the Python packages. `hmb.spark.session()` reports only the first missing
package. The doctor reports all missing packages, each with the command that installs it.

A *plain session* is a Spark session that a program starts without `hmb.spark.session()`. Besides Java and the
packages, a plain session needs two things: PySpark must find the data source `hmb`, and Spark's workers must
run the right Python interpreter.

In a plain session, Spark reads the path of the interpreter from the environment variable PYSPARK_PYTHON. If this
variable is not set, Spark uses the first `python3` on the PATH. The doctor imports the data source in the same
interpreter. If the import fails, the doctor prints how to solve the problem.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hmb.spark.local.environment import INSTALL, Finding, findings

# PySpark looks for data sources only in the folders of sys.path. So it does not find a module of an editable
# installation (`pip install --editable`). This program checks whether PySpark finds `pyspark_hmb`.
CHECK = """
import pathlib, pkgutil, hmb.spark.source, pyspark_hmb
if all(each.name != "pyspark_hmb" for each in pkgutil.iter_modules()):
    raise SystemExit(f"PYTHONPATH={pathlib.Path(pyspark_hmb.__file__).parents[1]}")
"""


def examine() -> list[Finding]:
    """Return the results of all checks. `hmb.spark.session()` works only if no result contains a problem."""
    return [Finding("python", f"{sys.version.split()[0]} at {sys.executable}"), *findings(), _source(), _workers()]


def _source() -> Finding:
    """Check whether PySpark finds the data source `hmb` in a session that does not use `hmb.spark.session()`.

    Such a session may use another Python interpreter than this process. The function therefore imports the data
    source in the interpreter that the session would use.
    """
    if find_spec("pyspark_hmb") is None:
        return Finding(
            "source", "", "the module pyspark_hmb, through which PySpark finds format('hmb'), is missing", INSTALL
        )
    program = os.environ.get("PYSPARK_PYTHON") or "python3"
    python = shutil.which(program)
    reason = f"no program {program}" if python is None else _import_error(python)
    if not reason:
        return Finding("source", f"format('hmb') registers itself in a plain session, which runs {python}")
    if reason.startswith("PYTHONPATH="):
        return Finding("source", f"hmb.spark.session() registers format('hmb'); a plain session needs {reason}")
    if python is not None and Path(python).parent == Path(sys.executable).parent:
        return Finding("source", "", f"format('hmb') cannot be imported: {reason}", INSTALL)
    hint = f"a plain session runs {python or program} ({reason}): set PYSPARK_PYTHON={sys.executable}"
    return Finding("source", f"hmb.spark.session() registers format('hmb'); {hint}")


def _import_error(python: str) -> str:
    """Return the last line of the error if the program `python` cannot import the data source, or else ""."""
    done = subprocess.run([python, "-c", CHECK], capture_output=True, text=True, check=False, timeout=60)
    return (done.stderr.strip().splitlines() or ["it ended with an error"])[-1] if done.returncode else ""


def _workers() -> Finding:
    """Check whether Spark's workers run the same Python interpreter as this process."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen in (None, sys.executable):
        return Finding("workers", f"run {sys.executable}")
    fix = f"unset PYSPARK_PYTHON, or export PYSPARK_PYTHON={sys.executable}"
    return Finding("workers", str(chosen), "PYSPARK_PYTHON names a different Python than this one", fix)
