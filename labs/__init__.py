"""The labs: exercises that teach how a broker works. Students write parts of a broker, and run a real broker.

Each lab is a folder with these files:
- `lab.md` is the text of the lab, a notebook in MyST Markdown. It explains a concept, and contains experiments,
  questions and two exercises. It also plots how the student's answer performs.
- `starter.py` is the beginning of an answer. `hmb lab start` copies it to `answer.py`, which the student completes.
- `check.py` contains a pytest test for each requirement. The docstring of the test states the requirement.
- `solution.py` is one correct answer to the first exercise.
- `hints.md` contains one hint in each section. `hmb lab hint` prints the next hint.
- `second_starter.py` and `second_check.py` belong to the second exercise.

The solutions of the second exercises are in the repository's folder `instructor`, which an installed HMB does not
contain. For teachers, `make instructor` collects the solutions of all exercises.

The checks of several exercises use four modules:
- `varints`               varints, for lab 5
- `random_file`           a file with random content, for lab 8
- `replicated_partition`  a simulated partition with three replicas, for lab 11
- `crashes`               simulated crashes: a student's function stops after a given number of executed lines
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

from ..cli.lab.workspace import (  # type: ignore[import-not-found]  # Mypy checks this folder as a package `labs`.
    WorkspaceError,
    locate,
)

SOLUTIONS = "HMB_LAB_SOLUTIONS"  # an environment variable: if it is set, `load_answer` imports the solution of a lab


def load_answer(number: int) -> ModuleType:
    """Import the student's `answer.py` for the lab with this number, and return the module.

    Programs in the text of a lab call this function. It looks for `answer.py` in the same folders as `hmb lab
    check`. If the environment variable HMB_LAB_SOLUTIONS is set, it imports the lab's solution instead.

    Raises SystemExit with a message if `answer.py` does not exist, or has never passed the check of the lab. If
    `answer.py` raises an exception during the import, this function raises the same exception.
    """
    if os.environ.get(SOLUTIONS):
        return load_solution(number)
    try:
        found = locate(number, Path.cwd())
        answer = found.answer()
    except WorkspaceError as error:
        raise SystemExit(str(error)) from error
    if not found.passed_checks():
        what = f"complete answer.py first (hmb lab check {number})"
        raise SystemExit(f"{what}; this program needs an answer that has passed the check")
    return _load(answer)


def load_solution(number: int) -> ModuleType:
    """Import the solution of a lab, for experiments that students run before they have an answer of their own."""
    return _load(next(Path(__file__).parent.glob(f"{number:02}_*")) / "solution.py")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("answer", path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
