"""The folder in which a student works on a lab, for example ./lab-04.

`hmb lab start` creates the folder with these files:
    lab.md      the text of the lab, for an editor
    lab.ipynb   the same text, for Jupyter
    answer.py   the student's answer, at first a copy of the lab's starter.py
    .lab.json   the seed, the number of hints shown, and the result of each check
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .catalog import Lab, find
from .checking import Result

STATE, ANSWER = ".lab.json", "answer.py"


class WorkspaceError(Exception):
    """The folder of a lab is missing, exists already, or has a damaged state file."""


@dataclass
class State:
    """The content of `.lab.json`."""

    lab: int
    seed: int  # each student has a different seed, and therefore different cases in the checks
    hints_shown: int = 0
    is_solution_shown: bool = False
    checks: list[dict[str, Any]] = field(default_factory=list)  # the results of each check, oldest first


class Workspace:
    """The folder in which a student works on a lab, together with the content of the folder's state file."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder, self.state = folder, state
        self.lab: Lab = find(state.lab)

    @property
    def answer(self) -> Path:
        """The path of the file with the student's answer. Raises WorkspaceError if the file does not exist."""
        path = self.folder / ANSWER
        if not path.is_file():
            raise WorkspaceError(f"{path} is missing; write your answer there (hmb lab start made this file)")
        return path

    @property
    def summary(self) -> str:
        """The result of the newest check in a few words, such as `3 of 5 requirements`."""
        if not self.state.checks:
            return "started"
        last = self.state.checks[-1]
        return "passed" if last["passed"] == last["of"] else f"{last['passed']} of {last['of']} requirements"

    def next_hint(self) -> str | None:
        """Return the next hint, and store that the student has read it.

        Return None after the last hint. Raises OSError.
        """
        hints = self.lab.hints
        if self.state.hints_shown == len(hints):
            return None
        self.state.hints_shown += 1
        self.save()
        return hints[self.state.hints_shown - 1]

    def add_check(self, results: list[Result]) -> None:
        """Store the results of a check in the state file. Raises OSError."""
        passed = [result for result in results if result.error is None]
        self.state.checks.append({"passed": len(passed), "of": len(results), "results": list(map(asdict, results))})
        self.save()

    def save(self) -> None:
        """Write the state file. If the write is interrupted, the old state file remains."""
        new = self.folder / (STATE + ".new")
        new.write_text(json.dumps(asdict(self.state), indent=1) + "\n", encoding="utf-8")
        new.replace(self.folder / STATE)


def start(lab: Lab, parent: Path, seed: int, notebooks: Mapping[str, str]) -> Workspace:
    """Create the folder of a lab in the folder `parent`. `notebooks` maps file names to notebooks in Jupyter's format.

    Raises WorkspaceError if the folder of the lab exists, because it may contain an answer. Raises OSError.
    """
    folder = parent / f"lab-{lab.number:02}"
    if folder.exists():
        raise WorkspaceError(f"{folder} exists already; go on there, or rename it to start again")
    folder.mkdir(parents=True)
    (folder / "lab.md").write_text(lab.text, encoding="utf-8")
    for name, notebook in notebooks.items():
        (folder / f"{name}.ipynb").write_text(notebook, encoding="utf-8")
    (folder / ANSWER).write_text(lab.starter, encoding="utf-8")
    workspace = Workspace(folder, State(lab.number, seed))
    workspace.save()
    return workspace


def locate(number: int, where: Path) -> Workspace:
    """Return the workspace of a lab. Raises WorkspaceError.

    The workspace can be the folder `where`, a folder in `where`, or a folder beside `where`.
    """
    find(number)
    name = f"lab-{number:02}"
    for folder in (where, where / name, where.parent / name):
        if (folder / STATE).is_file() and (state := _read(folder / STATE)).lab == number:
            return Workspace(folder, state)
    raise WorkspaceError(f"there is no {name} in {where}; create it with: hmb lab start {number}")


def started(where: Path) -> dict[int, Workspace]:
    """Return the workspaces in the folder `where`, by lab number. Raises WorkspaceError."""
    found = [Workspace(path.parent, _read(path)) for path in sorted(where.glob(f"lab-*/{STATE}"))]
    return {workspace.lab.number: workspace for workspace in found}


def _read(path: Path) -> State:
    try:
        return State(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        why = f"{path} is damaged ({error}); rename this folder, start the lab again, and copy your answer.py"
        raise WorkspaceError(why) from error
