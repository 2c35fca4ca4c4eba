"""`hmb lab`: exercises that teach how a broker works.

`hmb lab start 4` creates the folder lab-04 in the current folder. After that, other commands such as `hmb lab check 4`
work in the current folder, inside lab-04, and inside the folder of another lab, for example lab-05.
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

from ..shared.errors import ERROR, NOT_FOUND, CliError
from . import catalog, checking, grading, workspace
from .catalog import Lab, UnknownLab
from .checking import CheckFailed, Result
from .jupyter import notebook_file
from .workspace import Workspace, WorkspaceError

POLL = 0.3  # seconds between two checks whether the answer's file has changed
number_argument = click.argument("number", type=click.IntRange(min=1), metavar="N")


def _find(number: int) -> Lab:
    try:
        return catalog.find(number)
    except UnknownLab as error:
        raise CliError(str(error), NOT_FOUND) from error


def _locate(number: int) -> Workspace:
    _find(number)
    try:
        return workspace.locate(number, Path.cwd())
    except WorkspaceError as error:
        raise CliError(str(error), NOT_FOUND) from error


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
        state = done[lab.number].summary if lab.number in done else "not started"
        if as_json:
            click.echo(json.dumps({"number": lab.number, "title": lab.title, "state": state}))
        else:
            click.echo(f"{lab.title:48} {state}")


@command.command()
@number_argument
@click.option("--seed", metavar="TEXT", help="A number or your name; selects the random cases of the checks.")
def start(number: int, seed: str | None) -> None:
    """Create the folder lab-NN. It contains the text of lab N, and a file in which you write your answer."""
    lab = _find(number)
    texts = {"lab": lab.text, **lab.further_notebooks}
    try:
        chosen = secrets.randbelow(10**9) if seed is None else grading.seed_of(seed)
        made = workspace.start(lab, Path.cwd(), chosen, {name: notebook_file(text) for name, text in texts.items()})
    except WorkspaceError as error:
        raise CliError(str(error)) from error
    click.echo(f"{lab.title}\n")
    click.echo(f"read      {made.folder.name}/lab.md (or open {made.folder.name}/lab.ipynb in Jupyter)")
    for name in lab.further_notebooks:
        click.echo(f"also      {made.folder.name}/{name}.ipynb, which needs Spark: pip install 'hmb[spark]'")
    click.echo(f"complete  {made.folder.name}/answer.py")
    click.echo(f"check     hmb lab check {number}")


def _check(found: Workspace) -> list[Result]:
    """Check the answer, print the results, and store them in the state file of the lab's folder."""
    try:
        results = checking.check(found.lab, found.answer, found.state.seed)
    except (CheckFailed, WorkspaceError) as error:
        raise CliError(str(error)) from error
    found.add_check(results)
    for result in results:
        click.echo(f"{'ok  ' if result.error is None else 'FAIL'}  {result.requirement}")
        if result.error is not None:
            click.echo("      " + result.error.replace("\n", "\n      "))
    missing = sum(result.error is not None for result in results)
    if missing:
        click.echo(f"{missing} of {len(results)} requirements fail (hmb lab hint {found.lab.number} may help)")
    else:
        click.echo(f"all {len(results)} requirements are met: lab {found.lab.number} is passed")
    return results


@command.command()
@number_argument
@click.pass_context
def check(ctx: click.Context, number: int) -> None:
    """Check your answer to lab N. The exit code is 0 if the answer meets all requirements, and 1 otherwise."""
    results = _check(_locate(number))
    if any(result.error is not None for result in results):
        ctx.exit(ERROR)


@command.command()
@number_argument
def watch(number: int) -> None:
    """Check your answer to lab N each time you save it, until it meets all requirements. Ctrl-C ends the command."""
    found, seen = _locate(number), None
    while True:
        now = found.answer.stat().st_mtime_ns
        if now != seen:
            seen = now
            click.echo(f"-- {time.strftime('%H:%M:%S')}")
            try:
                if all(result.error is None for result in _check(found)):
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
        click.echo(f"{found.lab.title:48} {found.summary:24} {len(found.state.checks):3} checks  {hints}")


@command.command()
@number_argument
@click.option(
    "--format", "target", type=click.Choice(["gradescope", "classroom"]), default="gradescope", show_default=True,
    help="The program that will read the JSON.",
)  # fmt: skip
def export(number: int, target: str) -> None:
    """Check your answer to lab N, and print the results as JSON for Gradescope or GitHub Classroom."""
    found = _locate(number)
    try:
        results = checking.check(found.lab, found.answer, found.state.seed)
    except (CheckFailed, WorkspaceError) as error:
        results = [Result("The answer can be loaded.", str(error))]
    exported = _gradescope(results, found) if target == "gradescope" else _classroom(results)
    click.echo(json.dumps(exported, indent=1))


@command.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, for a spreadsheet.")
def grade(folder: Path, as_csv: bool) -> None:
    """Check the answers of a whole class. They must be in files DIR/STUDENT/lab-NN/answer.py.

    STUDENT is the name of a student, from which the command computes the seed of the random cases.
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
    for each in grading.grades(found):
        if as_csv:
            lines.writerow(asdict(each).values())
        else:
            click.echo(f"{each.student:20} lab {each.lab:2}  {each.passed} of {each.of}  {each.problem[:100]}".rstrip())


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
