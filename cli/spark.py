"""`hmb spark`: check whether Spark can run, load a topic into Parquet files, and pack HMB into an archive."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from .shared.client_options import servers_option
from .shared.completion import complete_topics
from .shared.errors import ERROR, UNREACHABLE, CliError
from .shared.output import json_option, print_json
from .shared.parameters import IntRange, NewPath
from .shared.settings import setting

if TYPE_CHECKING:
    from hmb.spark.loads import LoadRun

T = TypeVar("T")

# In a Spark worker's traceback, this expression finds the exception's name (without its module) and its message.
CAUSE = re.compile(r"^(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Failed)): (.+)$", re.MULTILINE)
# Java prints a line "Caused by: ..." for each cause of an exception. The last line names the real problem, for example
# "IOException: No space left on device".
JAVA_CAUSE = re.compile(r"^Caused by: (?:\w+\.)+([\w$]+: .+)$", re.MULTILINE)


@click.group()
def command() -> None:
    """Check whether Spark can run on this machine, load a topic into Parquet files, or pack HMB into an archive."""


@command.command()
@json_option
def doctor(as_json: bool) -> None:
    """Print each program that Spark needs, whether it is installed, and how to install it if it is missing.

    The exit code is 1 if something is missing.
    """
    from hmb.spark.local.doctor import examine

    findings = examine()
    for finding in findings:
        if as_json:
            print_json({**finding._asdict(), "ok": not finding.problem})
            continue
        click.echo(f"{'MISSING' if finding.problem else 'ok':8}{finding.name:9}{finding.problem or finding.found}")
        if finding.problem:
            click.echo(f"{'':17}to fix it: {finding.fix}")
    if any(finding.problem for finding in findings):
        click.get_current_context().exit(ERROR)


@command.command()
@click.argument("topic", shell_complete=complete_topics)
@click.argument("directory", type=NewPath(path_type=Path), metavar="DIR")
@click.option(
    "--records", type=IntRange(1), default=10_000_000, show_default=True, metavar="N",
    help="Commit after every N records."
)
@click.option(
    "--option", "options", type=setting, multiple=True, metavar="NAME=VALUE",
    help="An option of the data source. -o can be repeated."
)
@servers_option()
@json_option
def load(
    topic: str, directory: Path, records: int, options: tuple[tuple[str, str], ...], servers: str, as_json: bool
) -> None:
    """Add the new records of TOPIC to the Parquet files in DIR, each record exactly once.

    Each commit stores the records together with their offsets. The command may therefore run again at any time, also
    after a crash: it continues after the last committed offsets. To read all files: spark.read.parquet("DIR")
    """

    def print_commit(run: LoadRun, left: int) -> None:
        click.echo(f"run {run.number}: {run.rows:,} records in {run.files} files, {left:,} offsets left", err=True)

    runs = _load(topic, directory, servers, dict(options), records, print_commit)
    if as_json:
        print_json({"topic": topic, "directory": str(directory), "runs": [run.to_json() for run in runs]})
    elif runs:
        click.echo(f"loaded {sum(run.rows for run in runs):,} records of {topic} into {directory}")
    else:
        click.echo(f"{directory} contains all records of {topic}")


@command.command()
@click.argument("file", type=NewPath(path_type=Path, dir_okay=False), default="hmb-spark.zip")
@json_option
def ship(file: Path, as_json: bool) -> None:
    """Write an archive that contains HMB. Spark workers without HMB can use it.

    FILE is the name of the archive, by default hmb-spark.zip. The archive contains HMB and all packages that HMB
    requires on a worker. Spark copies the archive to each worker and unpacks it.
    """
    from hmb.spark.local.ship import ShipError
    from hmb.spark.local.ship import ship as write

    try:
        shipment = write(file)
    except ShipError as error:
        raise CliError(str(error)) from error
    if as_json:
        print_json({**shipment._asdict(), "settings": shipment.settings})
        return
    size = f"{shipment.size / 1e6:.1f} MB, {len(shipment.packages)} packages"
    click.echo(f"{file}: {size}, for Python {shipment.python} on {shipment.platform}")
    options = " ".join(f"--conf {name}={value}" for name, value in shipment.settings.items())
    click.echo(f"spark-submit {options} JOB.py")


def _load(
    topic: str,
    directory: Path,
    servers: str,
    options: dict[str, str],
    records: int,
    on_commit: Callable[[LoadRun, int], object],
) -> list[LoadRun]:
    """Load the topic into Parquet files.

    If Spark or one of its worker processes fails, raise CliError with a message of one line.
    """
    from hmb.spark.loads import LoadError, load
    from hmb.spark.local.environment import SparkUnavailableError
    from hmb.spark.options import OptionError

    try:
        return _in_thread(
            lambda: load(topic, directory, servers, options=options, records_per_run=records, on_commit=on_commit)
        )
    except (LoadError, SparkUnavailableError, OptionError) as error:
        raise CliError(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.", "hmb.spark.")):
            raise
        if causes := CAUSE.findall(str(error)):
            name, what = causes[-1]
            raise CliError(what, UNREACHABLE if name == "ConnectionFailed" else ERROR) from error
        what = [str(error).partition("\n")[0], *JAVA_CAUSE.findall(str(error))][-1]
        raise CliError(f"Spark cannot load {topic} into {directory}: {what}") from error


def _in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a new thread, and return its result.

    In the main thread, PySpark would install a handler for Ctrl-C that prints tracebacks. In another thread, PySpark
    cannot install a handler. Ctrl-C therefore ends the command and Spark at once. The files that Spark was writing stay
    in the directory, and the next load removes them.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - outcome.result() raises it, also a sys.exit() of PySpark
            outcome.set_exception(error)

    threading.Thread(target=run, name="load", daemon=True).start()
    return outcome.result()
