"""`hmb spark`: doctor, load."""

import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .completion import complete_topics
from .shared.common import (
    ERROR,
    UNREACHABLE,
    CliError,
    IntRange,
    NewPath,
    bootstrap_option,
    json_option,
    name_value,
    print_json,
)

if TYPE_CHECKING:
    from hmb.spark.loads import Run

T = TypeVar("T")

# How an exception of a worker ends: its name and what it says.
CAUSE = re.compile(r"^(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Failed)): (.+)$", re.MULTILINE)


@click.group()
def command() -> None:
    """See whether Spark will run on this machine; load a topic into Parquet files."""


@command.command()
@json_option
def doctor(as_json: bool) -> None:
    """Tell what Spark needs, whether it is there, and how to get what is not.

    The exit code is 1 if something is missing.
    """
    from hmb.spark.doctor import examine

    findings = examine()
    if as_json:
        print_json([{**finding._asdict(), "ok": not finding.problem} for finding in findings])
    else:
        for finding in findings:
            click.echo(f"{'MISSING' if finding.problem else 'ok':8}{finding.name:9}{finding.problem or finding.found}")
            if finding.problem:
                click.echo(f"{'':17}to fix it: {finding.fix}")
    if any(finding.problem for finding in findings):
        click.get_current_context().exit(ERROR)


@command.command(short_help="Load what is new in a topic into Parquet files.")
@click.argument("topic", shell_complete=complete_topics)
@click.argument("directory", type=NewPath(path_type=Path), metavar="DIR")
@click.option(
    "--records",
    type=IntRange(1),
    default=10_000_000,
    show_default=True,
    metavar="N",
    help="Commit whenever there are so many.",
)
@click.option(
    "--option",
    "options",
    type=name_value,
    multiple=True,
    metavar="NAME=VALUE",
    help="Of the data source; may be repeated.",
)
@bootstrap_option
@json_option
def load(
    topic: str, directory: Path, records: int, options: tuple[tuple[str, str], ...], servers: str, as_json: bool
) -> None:
    """Load what TOPIC has and DIR has not into Parquet files in DIR, each record once.

    Offsets are committed together with the data, so this may be run again at any time, after a crash, too. To read
    all of it: spark.read.parquet("DIR")
    """

    def tell(run: "Run", left: int) -> None:
        click.echo(f"run {run.number}: {run.rows:,} records in {run.files} files, {left:,} offsets left", err=True)

    runs = _load(topic, directory, servers, dict(options), records, tell)
    if as_json:
        print_json({"topic": topic, "directory": str(directory), "runs": [run.to_json() for run in runs]})
    elif runs:
        click.echo(f"loaded {sum(run.rows for run in runs):,} records of {topic} into {directory}")
    else:
        click.echo(f"{directory} has all of {topic}")


def _load(
    topic: str,
    directory: Path,
    servers: str,
    options: dict[str, str],
    records: int,
    tell: "Callable[[Run, int], object]",
) -> "list[Run]":
    """With one line for what went wrong."""
    from hmb.spark.environment import SparkUnavailableError
    from hmb.spark.loads import LoadError, load
    from hmb.spark.options import OptionError

    try:
        return _aside(lambda: load(topic, directory, servers, options=options, records_a_run=records, on_commit=tell))
    except (LoadError, SparkUnavailableError, OptionError) as error:
        raise CliError(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.", "hmb.spark.")):
            raise
        name, what = (CAUSE.findall(str(error)) or [(type(error).__name__, str(error).partition("\n")[0])])[-1]
        raise CliError(what, UNREACHABLE if name == "ConnectionFailed" else ERROR) from error


def _aside(work: Callable[[], T]) -> T:
    """Do it in a thread of its own: there PySpark does not take Ctrl-C for itself, to tell how it ends in tracebacks.

    The command ends at once, and Spark with it; what was not committed is swept by the next load.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where one waits, sys.exit() of PySpark too
            outcome.set_exception(error)

    threading.Thread(target=run, name="load", daemon=True).start()
    return outcome.result()
