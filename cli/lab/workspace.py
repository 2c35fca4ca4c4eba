"""Manage the folder in which a student works on a lab, for example ./lab-04.

`hmb lab start` creates the folder with these files:
    lab.md      the text of the lab, for an editor, with the answers to its questions at the end
    lab.ipynb   the same text, for Jupyter
    lab.py      the programs of the text, for a terminal
    answer.py   the student's answer, at first a copy of the lab's starter.py
    second.py   the answer to the second exercise; `hmb lab start N --second` creates this file
    .lab.json   the seed, the number of hints shown, and the result of each check

A newer version of HMB may change a lab while a student works on it. To notice this, the state file contains a checksum
of the lab's text. If the text in the installed version of HMB has another checksum, `update` saves this text as
lab.new.md. It does not change the student's files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from .catalog import FIRST, SECOND, Exercise, Lab, find
from .checking import Result
from .editor_text import editor_text
from .jupyter import program

NOT_STARTED = "not started"
STATE, NEW_TEXT = ".lab.json", "lab.new.md"


class WorkspaceError(Exception):
    """The folder of a lab is missing, exists already, or has a damaged state file."""


class NotStarted(WorkspaceError):
    """The command has not found the folder of a lab.

    The student has not started the lab, or its folder is in another place.
    """


@dataclass
class State:
    """The content of `.lab.json`."""

    lab: int
    seed: int  # each student has a different seed, and therefore different cases in the checks
    hints_shown: int = 0
    is_solution_shown: bool = False
    checks: list[dict[str, Any]] = field(default_factory=list)  # the results of each check, oldest first
    second_checks: list[dict[str, Any]] = field(default_factory=list)  # the results of the second exercise
    digest: int | None = None  # the checksum of the lab's text; None if an old version of HMB wrote the file

    def checks_of(self, exercise: Exercise) -> list[dict[str, Any]]:
        return self.checks if exercise is FIRST else self.second_checks


class Workspace:
    """The folder in which a student works on a lab, together with the content of the folder's state file."""

    def __init__(self, folder: Path, state: State) -> None:
        self.folder, self.state = folder, state
        self.lab: Lab = find(state.lab)

    def answer(self, exercise: Exercise = FIRST) -> Path:
        """Return the path of the file with the student's answer. Raises WorkspaceError if the file does not exist."""
        path = self.folder / exercise.answer
        if not path.is_file():
            how = f"create it with: hmb lab start {self.lab.number} --second"
            how = "write your answer there (hmb lab start made this file)" if exercise is FIRST else how
            raise WorkspaceError(f"{path} is missing; {how}")
        return path

    def passed_checks(self, exercise: Exercise = FIRST) -> list[dict[str, Any]]:
        """Return the results of all checks in which the answer met all requirements, from the oldest to the newest."""
        return [check for check in self.state.checks_of(exercise) if check["passed"] == check["of"]]

    def summary(self, exercise: Exercise = FIRST) -> str:
        """Return the student's progress in an exercise as a short text, such as `passed 2026-11-25`.

        The date is the day on which the student passed the exercise. A later failed check does not change the text.

        Until the student passes, the text contains the newest result, such as `3 of 5 requirements`. Before any check,
        the text is `started` or `not started`.
        """
        checks = self.state.checks_of(exercise)
        if not checks:
            return "started" if (self.folder / exercise.answer).is_file() else NOT_STARTED
        if passed := self.passed_checks(exercise):
            return f"passed {passed[0].get('date', '')}".rstrip()
        return f"{checks[-1]['passed']} of {checks[-1]['of']} requirements"

    def update(self) -> Path | None:
        """Save the lab's new text if the lab has changed since the student started it.

        Return the path of the new text, or None if the lab has not changed. Raises OSError if a file cannot be written.
        """
        if self.state.digest == self.lab.digest:
            return None
        path = self.folder / NEW_TEXT
        path.write_text(editor_text(self.lab.page), encoding="utf-8")
        self.state.digest = self.lab.digest
        self.save()
        return path

    def next_hint(self) -> str | None:
        """Return the next hint, and mark it as read in the state file.

        Return None after the last hint. Raises OSError.
        """
        hints = self.lab.hints
        if self.state.hints_shown == len(hints):
            return None
        self.state.hints_shown += 1
        self.save()
        return hints[self.state.hints_shown - 1]

    def add_check(self, results: list[Result], exercise: Exercise = FIRST) -> None:
        """Store the results of a check in the state file. Raises OSError."""
        passed = [result for result in results if result.error is None]
        date = datetime.now().astimezone().date().isoformat()
        stored = {"date": date, "passed": len(passed), "of": len(results), "results": list(map(asdict, results))}
        self.state.checks_of(exercise).append(stored)
        self.save()

    def save(self) -> None:
        """Write the state file. If the write is interrupted, the old state file remains."""
        new = self.folder / (STATE + ".new")
        new.write_text(json.dumps(asdict(self.state), indent=1) + "\n", encoding="utf-8")
        new.replace(self.folder / STATE)


def start(lab: Lab, parent: Path, seed: int, notebooks: Mapping[str, str]) -> Workspace:
    """Create the folder of a lab in the folder `parent`.

    `notebooks` maps the name of each notebook to its content in Jupyter's format. Raises WorkspaceError if the folder
    exists already, because it may contain the student's answer. Raises OSError if the folder or a file cannot be
    written.
    """
    folder = parent / f"lab-{lab.number:02}"
    if folder.exists():
        raise WorkspaceError(f"{folder} exists already; go on there, or rename it to start again")
    folder.mkdir(parents=True)
    (folder / "lab.md").write_text(editor_text(lab.page), encoding="utf-8")
    (folder / "lab.py").write_text(program(lab.text, lab.number), encoding="utf-8")
    for name, notebook in notebooks.items():
        (folder / f"{name}.ipynb").write_text(notebook, encoding="utf-8")
    (folder / FIRST.answer).write_text(lab.starter(), encoding="utf-8")
    workspace = Workspace(folder, State(lab.number, seed, digest=lab.digest))
    workspace.save()
    return workspace


def start_second(workspace: Workspace) -> Path:
    """Create the file for the answer to the second exercise, and return its path.

    Raises WorkspaceError if the file exists already. Raises OSError if the file cannot be written.
    """
    path = workspace.folder / SECOND.answer
    if path.exists():
        raise WorkspaceError(f"{path} exists already; go on there, or rename it to start again")
    path.write_text(workspace.lab.starter(SECOND), encoding="utf-8")
    return path


def locate(number: int, where: Path) -> Workspace:
    """Return the workspace of a lab: the folder in which the student works on the lab.

    The function looks in three places: the folder `where`, a folder such as `lab-04` in `where`, and such a folder in
    the parent of `where`. Raises NotStarted if none of these folders is the lab's workspace. Raises WorkspaceError if a
    state file is damaged, or if a newer version of HMB wrote it.
    """
    find(number)
    name = f"lab-{number:02}"
    for folder in (where, where / name, where.parent / name):
        if (folder / STATE).is_file() and (state := _read(folder / STATE)).lab == number:
            return Workspace(folder, state)
    raise NotStarted(f"there is no {name} in {where}; create it with: hmb lab start {number}")


def number_here(where: Path) -> int | None:
    """Return the number of the lab whose workspace is the folder `where`, or None. Raises WorkspaceError."""
    return _read(where / STATE).lab if (where / STATE).is_file() else None


def started(where: Path) -> dict[int, Workspace]:
    """Return the workspaces in the folder `where`. The dict maps the number of a lab to its workspace.

    If `where` itself is a workspace, return the workspaces in its parent folder. Raises WorkspaceError.
    """
    where = where.parent if (where / STATE).is_file() else where
    found = [Workspace(path.parent, _read(path)) for path in sorted(where.glob(f"lab-*/{STATE}"))]
    return {workspace.lab.number: workspace for workspace in found}


def _read(path: Path) -> State:
    """Read a state file. Raises WorkspaceError if the file is damaged, or if a newer version of HMB wrote it."""
    repair = "rename this folder, start the lab again, and copy your answer there"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WorkspaceError(f"{path} is damaged ({error}); {repair}") from error
    if not isinstance(content, dict):
        raise WorkspaceError(f"{path} is damaged; {repair}")
    known = {each.name for each in fields(State)}
    if unknown := sorted(content.keys() - known):
        what = f"the field {unknown[0]!r}, which this version of HMB does not know"
        raise WorkspaceError(f"{path} has {what}; a newer version has written it: pip install --upgrade hmb")
    numbers = [content.get("lab"), content.get("seed"), content.get("hints_shown", 0), content.get("digest") or 0]
    lists = [content.get("checks", []), content.get("second_checks", [])]
    if not all(isinstance(each, int) for each in numbers) or not all(isinstance(each, list) for each in lists):
        raise WorkspaceError(f"{path} is damaged (a number or a list is missing); {repair}")
    if not all(isinstance(check, dict) and {"passed", "of"} <= check.keys() for each in lists for check in each):
        raise WorkspaceError(f"{path} is damaged (the result of a check is missing); {repair}")
    return State(**content)
