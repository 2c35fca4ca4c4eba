"""`hmb hailstorm demo`: run an example topology on real data, and draw its result.

Without `-b`, `hmb hailstorm demo` starts its own broker. The command sends the records while the topology runs. When a
complete snapshot contains the results of all records, the command ends the topology. With `--kill`, the command crashes
a processor every two seconds. The result is the same as without crashes.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..shared.errors import CliError
from ..shared.output import json_option, plural, print_json
from ..shared.parameters import NewPath, servers
from .arguments import errors_as_lines, quiet_option, workers_option

if TYPE_CHECKING:
    from hmb.hailstorm.runners import RunResult, ThreadRunner

EXAMPLES = ("trending", "weather")
LOOK_INTERVAL = 0.1  # seconds
KILL_INTERVAL = 2.0  # seconds
GRACE_PERIOD = 0.25  # seconds between two snapshots: short, so that several are completed between two crashes
SEND_AT_ONCE = 200  # with --rate: the number of records to send between two pauses


@click.command("demo")
@click.argument("example", type=click.Choice(EXAMPLES))
@click.option(
    "-b", "--bootstrap-server", "address", type=servers,
    help="The broker to use. By default the demo starts one.",
)
@click.option(
    "--rate", type=click.FloatRange(min=1),
    help="The number of records to send per second. By default, as fast as possible.",
)
@workers_option
@click.option("--kill", is_flag=True, help="Crash a processor every two seconds.")
@click.option(
    "--plot", type=NewPath(path_type=Path),
    help="Draw the result, and save the picture in this file. This needs matplotlib.",
)
@quiet_option
@json_option
def command(example: str, address: str | None, **options: Any) -> None:
    """Run an example on real data, and draw its result.

    EXAMPLE is trending or weather. With trending, the topology counts the words in the documentation of Python's
    library. With weather, the topology adds up the rain of Seattle in windows of four weeks, and writes the sums to the
    database hailstorm-weather.db.
    """
    if options["workers"] and options["kill"]:
        raise CliError("--kill works only with threads, so it cannot be combined with --workers", 2)
    if options["plot"] is not None and importlib.util.find_spec("matplotlib") is None:
        raise CliError("--plot needs `pip install matplotlib`")
    module = importlib.import_module(f".examples.{example}", __package__)
    with contextlib.ExitStack() as stack:
        if address is None:
            address = stack.enter_context(_broker())
        with errors_as_lines():
            result, seconds, count = run_example(module, address, options)
    if options["plot"] is not None:
        module.draw(result.states).savefig(options["plot"])
    if options["as_json"]:
        print_json({"records": count, "seconds": seconds, "snapshots": result.snapshots, "epochs": result.epochs})
    else:
        print("\n".join(module.lines(result.states)))
        recoveries = plural(result.epochs - 1, "recovery", "recoveries")
        summary = f"{count:,} records in {seconds:.1f} s, {plural(result.snapshots, 'snapshot')}, {recoveries}"
        click.echo(summary, err=True)


def run_example(module: Any, address: str, options: dict[str, Any]) -> tuple[RunResult, float, int]:
    """Run the topology and send the records. Return the result, the duration (s), and the number of records."""
    from hmb.hailstorm import start

    records = list(module.records())
    module.prepare()
    _create(address, module.TOPIC, module.PARTITIONS)
    started = time.monotonic()
    sender = threading.Thread(target=_send, args=(address, module.TOPIC, records, options["rate"]), daemon=True)
    workers = options["workers"]
    with start(module.topology, address, workers=workers, grace_period=GRACE_PERIOD, max_restarts=None) as runner:
        sender.start()
        with _shown(runner, module.topology.name, not options["quiet"]):
            _follow(runner, sender, len(records), kill=options["kill"])
        return runner.stop(), time.monotonic() - started, len(records)


def _follow(runner: Any, sender: threading.Thread, count: int, *, kill: bool) -> None:
    """Wait until a complete snapshot contains the results of all `count` records.

    If `kill` is true, crash a random processor every KILL_INTERVAL seconds.
    """
    chance = random.Random(0)
    killed_at = time.monotonic()
    while not runner.has_ended() and (sender.is_alive() or _completed(runner) < count):
        runner.supervise()
        if kill and time.monotonic() - killed_at > KILL_INTERVAL:
            killed_at = time.monotonic()
            _crash(runner, chance)
        time.sleep(LOOK_INTERVAL)


def _crash(runner: ThreadRunner, chance: random.Random) -> None:
    """Choose a processor at random, and stop its thread.

    The processor loses its state, and the payloads that it has received but not processed.
    """
    runner.threads[chance.choice(sorted(runner.threads))].stop()


def _completed(runner: Any) -> int:
    """Return how many records the topology had processed at its newest complete snapshot."""
    completed = runner.master and runner.master.completed
    return sum(completed.values()) if completed else 0


def _create(address: str, topic: str, partitions: int) -> None:
    from hmb.client import Admin, KafkaError, NewTopic

    with Admin(address) as admin:
        # The value -1 keeps records forever. With the default, the broker would delete the weather events, because
        # their timestamps are several years old.
        settings = {"retention.ms": "-1"}
        (created,) = admin.create_topics([NewTopic(topic, partitions, configs=settings)]).values()
    if isinstance(created, KafkaError):
        advice = f"the demo needs a topic of its own; delete it with `hmb topics delete {topic}`"
        raise CliError(f"{created.message}: {advice}")


def _send(address: str, topic: str, records: list[Any], rate: float | None) -> None:
    """Send the records. `rate` is the number of records per second; None means as fast as possible."""
    from hmb.client import Producer

    started = time.monotonic()
    with Producer(address) as producer:
        for number, (key, value, *timestamp) in enumerate(records):
            producer.send(topic, value, key, timestamp=timestamp[0] if timestamp else None)
            if rate is not None and number % SEND_AT_ONCE == 0:
                time.sleep(max(0.0, started + number / rate - time.monotonic()))


@contextlib.contextmanager
def _broker() -> Iterator[str]:
    from hmb import Broker

    with Broker() as broker:
        yield broker.bootstrap_servers


@contextlib.contextmanager
def _shown(runner: Any, name: str, wanted: bool) -> Iterator[None]:
    """If `wanted` is true, show the live display on standard error while the `with` block runs."""
    if not wanted or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    from .display import TopologyDisplay

    display = TopologyDisplay(name)

    def render() -> Any:
        return display.render(runner.master, runner.living, runner.snapshots)

    with Live(get_renderable=render, console=Console(stderr=True), refresh_per_second=4, transient=True):
        yield
