"""The code that all benchmark commands use: it reads options, repeats runs, stores results and prints tables.

A scenario is a function that measures something. The decorator `scenario` turns the function into a command:
    @scenario("latency", VIEW)  # VIEW makes tables.
    def command(measurement: Measurement) -> None:
        for number, broker in measurement.rounds([hmb, kafka]):  # Each broker runs once per round.
            figures = measure(broker)
            measurement.add(number, broker.name, "client", {"records": 5000}, figures)

Each benchmark command has the options `--repeat`, `--results`, `--publish`, `--kafka-dir` and `--json`.

A benchmark command first opens a file and a topic for the results of its runs. It then calls the scenario,
which runs the benchmark. At the end, the command prints the results as tables.

A scenario can start brokers, and adds each of them to `measurement.stack`. The command stops these brokers when
it ends, even after an error.

A measurement has several rounds. The *contestants* are the things to compare, for example HMB and Kafka.
Each contestant runs once per round. The speed of a shared machine changes from minute to minute. Therefore
only runs of the same round are compared. So that no contestant always runs first, the first contestant of a
round runs last in the next round:
    round 0: HMB, Kafka    round 1: Kafka, HMB    round 2: HMB, Kafka
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click

from hmb.client.metadata import parse_servers

from .errors import PeerUnavailable
from .peers.hmb_broker import Installation
from .peers.jars import use_kafka
from .progress import Progress
from .report.samples import DIRECTORY, Sample, Samples, collect
from .report.tables import text
from .report.view import ROUNDS_FOR_VERDICT, SuiteReport

Contestant = TypeVar("Contestant")
Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = Mapping[str, float | str]
Opponent = str | Installation | None
POSITIVE = click.IntRange(min=1)
ROUNDS = 3
# Options that several commands have.
record_size_option = click.option(
    "--record-size", type=POSITIVE, default=100, show_default=True, help="Size of a message in bytes."
)
scale_option = click.option(
    "--scale", type=float, default=1.0, show_default=True, help="Multiply the number of records by this factor."
)
seconds_option = click.option(
    "--seconds", type=float, default=5.0, show_default=True, help="Duration of a run in seconds."
)
warm_up_option = click.option(
    "--warm-up", "warm_up_seconds", type=float, default=60.0, show_default=True,
    help="Duration of the warm-up of each broker, in seconds.",
)  # fmt: skip
VERSUS_HELP = (
    "Measure the HMB of this CHECKOUT instead of Kafka, alternately with this HMB. CHECKOUT is a checkout with a "
    "virtual environment (`make -C CHECKOUT .venv/core.stamp` builds it), a virtual environment, or a Python for which "
    f"HMB is installed. There are {ROUNDS_FOR_VERDICT} rounds instead of {ROUNDS}. The last table shows the median of "
    "the ratios, and the cells in which this HMB was better, or worse, in every round."
)


class Measurement:
    """One execution of a benchmark command, with its rounds and its samples."""

    def __init__(self, suite: str, rounds: int, samples: Samples, stack: ExitStack) -> None:
        self.suite = suite
        self.round_count = rounds
        self.samples = samples
        self.stack = stack  # At the end of the benchmark, this ExitStack stops the brokers that were added to it.

    def progress(self, steps: int) -> Progress:
        return Progress(steps, self.stack)

    def rounds(self, contestants: Sequence[Contestant]) -> Iterator[tuple[int, Contestant]]:
        """Yield (number of the round, contestant) for each run.

        The contestants are the things that the benchmark compares, for example two brokers. In each round, each
        contestant runs once.
        """
        return alternate(contestants, self.round_count)

    def add(
        self,
        number: int,
        broker: str,
        client: str,
        parameters: Parameters,
        figures: Mapping[str, float],
        *,
        suite: str | None = None,
    ) -> None:
        """Store the figures of one run as a sample. `number` is the number of the round."""
        self.samples.add(Sample(suite or self.suite, broker, client, number, parameters, figures))


def alternate(contestants: Sequence[Contestant], rounds: int) -> Iterator[tuple[int, Contestant]]:
    """Yield (number of the round, contestant) for each run: in each round, each contestant runs once.

    Round 0 begins with the first contestant, round 1 with the second contestant, and so on.
    """
    for number in range(rounds):
        first = number % len(contestants)
        for contestant in (*contestants[first:], *contestants[:first]):
            yield number, contestant


def scenario(suite: str, view: SuiteReport, *, rounds: int = ROUNDS) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a benchmark command from a function. `rounds` is the default value of --repeat."""

    def decorate(measure: Callable[..., None]) -> click.Command:
        def run(
            repeat: int | None,
            results: Path,
            publish: str | None,
            kafka_dir: Path | None,
            as_json: bool,
            **options: Any,
        ) -> None:
            if kafka_dir is not None:
                use_kafka(kafka_dir)
            if repeat is None:
                repeat = ROUNDS_FOR_VERDICT if isinstance(options.get("versus"), Installation) else rounds
            with ExitStack() as stack, collect(suite, results, publish) as samples:
                measure(Measurement(suite, repeat, samples, stack), **options)
            output = [json.dumps(samples.document, indent=1)] if as_json else text(view.tables(samples.taken))
            for line in output:
                click.echo(line)
            click.echo(f"all runs: {samples.path}", err=True)

        command = click.Command(suite, callback=run, help=measure.__doc__)
        command.params = [*reversed(getattr(measure, "__click_params__", [])), *_shared_options(rounds)]
        return command

    return decorate


def _shared_options(rounds: int) -> list[click.Parameter]:
    return [
        click.Option(["--repeat"], type=POSITIVE, help=f"Number of rounds.  [default: {rounds}]"),
        click.Option(
            ["--results"], type=click.Path(path_type=Path), default=DIRECTORY, show_default=True,
            help="The folder in which the results of all runs are stored.",
        ),
        click.Option(
            ["--publish"], type=_address, metavar="HOST:PORT",
            help="Send the results of all runs to the topic hmb.bench of this broker.",
        ),
        click.Option(
            ["--kafka-dir"], type=click.Path(path_type=Path), metavar="DIR",
            help="The folder with Kafka's jars: the download folder of `hmb bench fetch-kafka`, or the folder libs "
            "of a Kafka release.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print all results as JSON instead of tables."),
    ]  # fmt: skip


def broker_options(function: Function) -> Function:
    """Add the options -b and --versus, with which a user chooses the brokers that a command measures.

    Use this decorator only for a command that measures the same running brokers in all rounds. If a command starts
    new brokers for each measurement, use `versus_option`.
    """
    versus_help = VERSUS_HELP + " HOST:PORT measures that broker instead of Kafka."
    function = click.option("--versus", type=_opponent, metavar="CHECKOUT|HOST:PORT", help=versus_help)(function)
    return click.option(
        "-b",
        "--bootstrap-server",
        "bootstrap",
        type=_address,
        metavar="HOST:PORT",
        help="Measure the broker at this address. Without this option, the benchmark starts HMB. It also starts Kafka "
        "4.3.0 if Kafka's jars are installed.",
    )(function)


def versus_option(function: Function) -> Function:
    """Add --versus (a second HMB to measure) to a command that starts new brokers or clients for each run."""
    return click.option("--versus", type=_installation, metavar="CHECKOUT", help=VERSUS_HELP)(function)


class CommaList(click.ParamType[list[Any]]):
    """The type of an option with several values, separated by commas, for example `--cells 1,4,7`."""

    def __init__(self, item: click.ParamType[Any]) -> None:
        self.item = item
        self.name = f"{item.name},..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        items = value.split(",") if isinstance(value, str) else value
        return [self.item.convert(item, param, ctx) for item in items]


def _address(value: str) -> str:
    """Check that the value of an option has the form HOST:PORT, and return the value. Raises click.BadParameter."""
    try:
        parse_servers(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


def _installation(value: str) -> Installation:
    """Return the installation of HMB at a path: a checkout, a virtual environment or a Python executable.

    Raises click.BadParameter if HMB is not installed there.
    """
    try:
        return Installation.at(Path(value))
    except PeerUnavailable as error:
        raise click.BadParameter(str(error)) from error


def _opponent(value: str) -> str | Installation:
    return _installation(value) if Path(value).exists() else _address(value)
