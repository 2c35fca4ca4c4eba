"""`hmb lab`: exercises that teach how a broker works.

`hmb lab start 4` creates the folder lab-04 in the current folder. You can run other commands, such as `hmb lab
check 4`, in three places. These are lab-04 itself, its parent folder, and a neighboring lab folder such as
lab-05. Inside lab-04, you can leave out the number: `hmb lab check`. Each lab has a second exercise, which you
select with the option `--second`.
"""

from __future__ import annotations

import csv
import json
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import click

from ..shared.errors import ERROR, NOT_FOUND, USAGE, CliError
from . import catalog, checking, grading, workspace
from .catalog import FIRST, SECOND, Exercise, Lab, UnknownLab
from .checking import CheckFailed, Result
from .jupyter import notebook_file
from .workspace import NOT_STARTED, NotStarted, Workspace, WorkspaceError

POLL = 0.3  # seconds between two checks whether the answer's file has changed
PRINTED_LINES = 10  # If a requirement fails, the student sees at most the last 10 lines that the answer has printed.


def _number_or_here(ctx: click.Context, parameter: click.Parameter, number: int | None) -> int:
    """Return `number`. If it is None, return the number of the lab to which the current folder belongs."""
    try:
        found = number or workspace.number_here(Path.cwd())
    except WorkspaceError as error:
        raise CliError(str(error), NOT_FOUND) from error
    if found is None:
        raise click.MissingParameter("outside of a folder lab-NN, name the lab", ctx, parameter)
    return found


new_number_argument = click.argument("number", type=click.IntRange(min=1), metavar="N")
number_argument = click.argument(
    "number", type=click.IntRange(min=1), metavar="[N]", required=False, callback=_number_or_here
)
second_option = click.option(
    "--second", "exercise", is_flag=True, callback=lambda *given: SECOND if given[2] else FIRST,
    help="Use the second exercise of the lab.",
)  # fmt: skip


def _find(number: int) -> Lab:
    try:
        return catalog.find(number)
    except UnknownLab as error:
        raise CliError(str(error), NOT_FOUND) from error


def _locate(number: int) -> Workspace:
    """Return the folder in which the student works on a lab. If the lab has changed, print where its new text is."""
    _find(number)
    try:
        found = workspace.locate(number, Path.cwd())
    except WorkspaceError as error:
        raise CliError(str(error), NOT_FOUND) from error
    if new_text := found.update():
        what = f"lab {number} has changed since you started it, and its requirements may differ from lab.md"
        click.echo(f"{what}; the new text is {new_text}, and your files are unchanged", err=True)
    return found


def _started() -> dict[int, Workspace]:
    try:
        return workspace.started(Path.cwd())
    except (WorkspaceError, UnknownLab) as error:
        raise CliError(str(error)) from error


@click.group()
def command() -> None:
    """Learn how a broker works: labs with experiments, exercises and checks.

    First steps: hmb lab list, hmb lab start 4, hmb lab check 4
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each lab.")
def list_(as_json: bool) -> None:
    """List the labs, and show which of them you have started and passed in this folder."""
    done = _started()
    for lab in catalog.labs():
        states = [done[lab.number].summary(each) if lab.number in done else NOT_STARTED for each in catalog.EXERCISES]
        if as_json:
            content = {"number": lab.number, "title": lab.title, "state": states[0], "second_exercise": states[1]}
            click.echo(json.dumps(content))
        else:
            click.echo(f"{lab.title:48} {_joined(states)}")


def _joined(states: Sequence[str]) -> str:
    """Return the states of a lab's two exercises as one text.

    If the student has not started the second exercise, the text contains only the state of the first exercise.
    """
    return states[0] if states[1] == NOT_STARTED else f"{states[0]}, second exercise: {states[1]}"


@command.command()
@new_number_argument
@click.option("--seed", metavar="TEXT", help="A number or your name; selects the random cases of the checks.")
@second_option
def start(number: int, seed: str | None, exercise: Exercise) -> None:
    """Create the folder lab-NN. It contains the text of lab N, and a file in which you write your answer.

    With --second, the command adds the file for the answer to the second exercise. If the folder lab-NN does not
    exist, the command also creates this folder.
    """
    lab = _find(number)
    try:
        if exercise is FIRST:
            _start(lab, seed)
        else:
            _start_second(lab, seed)
    except WorkspaceError as error:
        raise CliError(str(error)) from error


def _start(lab: Lab, seed: str | None) -> None:
    texts = {"lab": lab.page, **lab.further_notebooks}
    chosen = secrets.randbelow(10**9) if seed is None else grading.seed_of(seed)
    made = workspace.start(lab, Path.cwd(), chosen, {name: notebook_file(text) for name, text in texts.items()})
    click.echo(f"{lab.title}\n")
    click.echo(f"read      {made.folder.name}/lab.md (or open {made.folder.name}/lab.ipynb in Jupyter)")
    click.echo(f"run       python lab.py, in the folder {made.folder.name} (the programs of lab.md)")
    for name in lab.further_notebooks:
        click.echo(f"also      {made.folder.name}/{name}.ipynb, which needs Spark: pip install 'hmb[spark]'")
    click.echo(f"complete  {made.folder.name}/answer.py")
    click.echo(f"check     hmb lab check {lab.number}")


def _start_second(lab: Lab, seed: str | None) -> None:
    try:
        workspace.locate(lab.number, Path.cwd())
    except NotStarted:
        _start(lab, seed)
    else:
        if seed is not None:
            what = f"lab {lab.number} is started already, and both exercises have the same seed"
            raise CliError(f"{what}; repeat the command without --seed", USAGE)
    found = _locate(lab.number)
    path = workspace.start_second(found)
    click.echo(f"complete  {found.folder.name}/{path.name}, as the section 'The second exercise' of lab.md describes")
    click.echo(f"check     hmb lab check {lab.number} --second")


def _check(found: Workspace, exercise: Exercise) -> list[Result]:
    """Check the answer, print the results, and store them in the state file of the lab's folder."""
    try:
        results = checking.check(found.lab, found.answer(exercise), found.state.seed, exercise=exercise)
    except (CheckFailed, WorkspaceError) as error:
        raise CliError(str(error)) from error
    found.add_check(results, exercise)
    shown: dict[str, int] = {}  # for each error: the number of the first requirement that fails with this error
    for number, result in enumerate(results, 1):  # In lab.md, each requirement has the same number.
        click.echo(f"{'ok  ' if result.error is None else 'FAIL'}  {number}. {result.requirement}")
        if result.error is not None:
            _show_error(result, shown.setdefault(result.error, number), number)
    missing = sum(result.error is not None for result in results)
    if missing:
        help_ = f" (hmb lab hint {found.lab.number} may help)" if exercise is FIRST else ""
        click.echo(f"{missing} of {len(results)} requirements fail{help_}")
    else:
        what = f"lab {found.lab.number}" if exercise is FIRST else f"the second exercise of lab {found.lab.number}"
        click.echo(f"all {len(results)} requirements are met: {what} is passed")
    return results


def _show_error(result: Result, first: int, number: int) -> None:
    """Show why requirement `number` fails, and the last lines that the student's code has printed.

    `first` is the lowest number of a requirement with the same error. If requirements 2 and 5 have the same error,
    the output for requirement 5 names requirement 2 instead of repeating the error.
    """
    error = result.error or "" if first == number else f"the same error as for requirement {first}"
    click.echo("      " + error.replace("\n", "\n      "))
    for line in result.printed.splitlines()[-PRINTED_LINES:]:
        click.echo(f"      printed: {line}")


@command.command()
@number_argument
@second_option
@click.pass_context
def check(ctx: click.Context, number: int, exercise: Exercise) -> None:
    """Check your answer to lab N. The exit code is 0 if the answer meets all requirements, and 1 otherwise."""
    results = _check(_locate(number), exercise)
    if any(result.error is not None for result in results):
        ctx.exit(ERROR)


@command.command()
@number_argument
@second_option
def watch(number: int, exercise: Exercise) -> None:
    """Check your answer to lab N each time you save it, until it meets all requirements. Ctrl-C ends the command."""
    found = _locate(number)
    try:
        path = found.answer(exercise)
    except WorkspaceError as error:
        raise CliError(str(error), NOT_FOUND) from error
    seen: int | None = None
    while True:
        # Some editors remove the old file before they write the new file. A missing file therefore counts as unchanged.
        now = path.stat().st_mtime_ns if path.is_file() else seen
        if now != seen:
            seen = now
            click.echo(f"-- {time.strftime('%H:%M:%S')}")
            try:
                if all(result.error is None for result in _check(found, exercise)):
                    return
            except CliError as error:
                click.echo(str(error))
        time.sleep(POLL)


@command.command()
@number_argument
def hint(number: int) -> None:
    """Print the next hint for lab N."""
    found = _locate(number)
    text = found.next_hint()
    if text is None:
        click.echo(f"these were all {found.state.hints_shown} hints; a solution: hmb lab solution {number}", err=True)
        return
    click.echo(f"Hint {found.state.hints_shown} of {len(found.lab.hints)}: {text}")


@command.command()
@number_argument
def solution(number: int) -> None:
    """Print a solution of lab N. The output of `hmb lab export` will show that you have seen the solution."""
    found = _locate(number)
    found.state.is_solution_shown = True
    found.save()
    click.echo(found.lab.solution, nl=False)


@command.command()
def progress() -> None:
    """Show the labs that you have started in this folder."""
    done = _started()
    if not done:
        click.echo("no lab is started in this folder; see: hmb lab list", err=True)
    for found in done.values():
        hints = f"{found.state.hints_shown} of {len(found.lab.hints)} hints"
        count = len(found.state.checks) + len(found.state.second_checks)
        states = _joined([found.summary(each) for each in catalog.EXERCISES])
        click.echo(f"{found.lab.title:48} {states:24} {count:3} {'check ' if count == 1 else 'checks'}  {hints}")


@command.command()
@number_argument
@click.option(
    "--format", "target", type=click.Choice(["gradescope", "classroom"]), default="gradescope", show_default=True,
    help="The program that will read the JSON.",
)  # fmt: skip
@second_option
def export(number: int, target: str, exercise: Exercise) -> None:
    """Check your answer to lab N, and print the results as JSON for Gradescope or GitHub Classroom."""
    found = _locate(number)
    try:
        results = checking.check(found.lab, found.answer(exercise), found.state.seed, exercise=exercise)
    except (CheckFailed, WorkspaceError) as error:
        results = [Result("The answer can be loaded.", str(error))]
    exported = _gradescope(results, found) if target == "gradescope" else _classroom(results)
    click.echo(json.dumps(exported, indent=1))


@command.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, for a spreadsheet.")
@click.pass_context
def grade(ctx: click.Context, folder: Path, as_csv: bool) -> None:
    """Check the lab answers of a whole class. The answers are in the files DIR/STUDENT/lab-NN/answer.py.

    DIR contains one folder for each student, and the name of the folder is the student's name. In a folder lab-NN,
    answer.py is the answer to the first exercise, and second.py is the answer to the second exercise.

    The checks of an exercise use random cases. These cases depend on the student's name, so they differ between
    students.

    If at least one student has an answer.py for a lab, every student must have an answer.py for this lab. The
    command prints a line for each missing answer.py. The exit code is 1 if one is missing.
    """
    try:
        found = grading.submissions(folder)
    except UnknownLab as error:
        raise CliError(f"{folder}: {error}", NOT_FOUND) from error
    if not found:
        where = f"{folder}/STUDENT/lab-NN/answer.py"
        raise CliError(f"{folder} contains no answers; they are expected at {where}", NOT_FOUND)
    lines = csv.writer(sys.stdout, lineterminator="\n")
    if as_csv:
        lines.writerow(field.name for field in fields(grading.Grade))
    missing = grading.missing(folder, found)
    for each in (*grading.grades(found), *missing):
        if as_csv:
            lines.writerow(asdict(each).values())
        else:
            what = f"{each.student:20} lab {each.lab:2} {each.exercise:6}"
            click.echo(f"{what}  {each.passed} of {each.of}  {each.problem}".rstrip())
    if missing:
        ctx.exit(ERROR)


def _gradescope(results: Sequence[Result], found: Workspace) -> dict[str, object]:
    """Return the results as Gradescope's results.json, with one point for each requirement."""
    tests = [
        {"name": each.requirement, "score": int(each.error is None), "max_score": 1, "output": each.error or ""}
        for each in results
    ]
    state = found.state
    notes = {"hints": state.hints_shown, "solution_shown": state.is_solution_shown, "seed": state.seed}
    return {"tests": tests, "extra_data": notes}


def _classroom(results: Sequence[Result]) -> dict[str, object]:
    """Return the results in the format (version 1) that GitHub Classroom's reporter reads."""
    tests = [
        {"name": each.requirement, "status": "pass" if each.error is None else "fail", "score": int(each.error is None),
         "message": each.error or ""}
        for each in results
    ]  # fmt: skip
    status = "pass" if all(each.error is None for each in results) else "fail"
    return {"version": 1, "status": status, "max_score": len(results), "tests": tests}
