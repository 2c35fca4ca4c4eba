"""`hmb hailstorm run`: run all processors of a topology, or only one processor."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hmb.defaults import DEFAULT_HOST, GRACE_PERIOD

from ..shared.client_options import ClientConfig, client_options, security_settings
from ..shared.errors import CliError
from ..shared.interruption import sigterm_as_ctrl_c
from ..shared.output import json_option, plural, print_json
from ..shared.parameters import NewPath
from ..shared.streams import reader_has_left
from .arguments import (
    AddressType,
    connect,
    errors_as_lines,
    quiet_option,
    refuse_second_run,
    registry_file,
    topology_argument,
    workers_option,
)

if TYPE_CHECKING:
    from hmb.hailstorm.runners import Runner, RunResult, RunSettings
    from hmb.hailstorm.snapshots import SnapshotStore
    from hmb.hailstorm.topology import Topology

DISPLAY_INTERVAL = 0.25  # seconds


@click.command("run")
@topology_argument
@client_options(security_settings)
@click.option(
    "--store",
    type=NewPath(path_type=Path),
    default=Path("hailstorm-snapshots"),
    show_default="hailstorm-snapshots",
    help="The snapshot store: a directory, or an SQLite file (.db, .sqlite).",
)
@workers_option
@click.option("--until-end", is_flag=True, help="End after the last record that the topics contain now.")
@click.option(
    "--allow-expired", is_flag=True,
    help="Begin at the oldest remaining record of a partition, even if retention has deleted older records. Without "
    "this option, deleted records are an error.",
)
@click.option(
    "--grace-period",
    type=click.FloatRange(min=0),
    default=GRACE_PERIOD,
    show_default=True,
    help="The time between two snapshots, in seconds.",
)
@click.option(
    "--processor", metavar="NAME",
    help='Run only the processor NAME, for example count-0. If NAME is "negotiator", run only the negotiator.',
)
@click.option("--registry", type=AddressType(), help="With --processor: the address of the registry.")
@click.option(
    "--zookeeper", metavar="HOSTS", help="With --processor: the addresses of ZooKeeper, if it is used as the registry."
)
@click.option(
    "--host", default=DEFAULT_HOST, show_default=True,
    help="The address at which other processors reach this processor.",
)
@quiet_option
@json_option
def command(topology: str, client: ClientConfig, store: Path, **options: Any) -> None:
    """Run all processors of a topology until it ends. With --processor, run only one processor.

    After Ctrl-C or SIGTERM, the topology takes a last snapshot and ends. A second Ctrl-C ends it at once, without a
    snapshot. The next run with the same store continues at the newest complete snapshot.
    """
    from hmb.hailstorm.negotiator import NegotiatorSettings
    from hmb.hailstorm.reference import load_topology
    from hmb.hailstorm.runners import RunSettings
    from hmb.hailstorm.snapshots import open_store

    until = "end" if options["until_end"] else None
    negotiator = NegotiatorSettings(options["grace_period"])
    settings = RunSettings(
        client.servers,
        until,  # type: ignore[arg-type]
        negotiator,
        allow_expired=options["allow_expired"],
        security=client.keywords.get("security", {}),
    )
    with errors_as_lines():
        loaded = load_topology(topology)
        opened = open_store(store)
        if options["processor"] is not None:
            run_one(loaded, settings, opened, options)
            return
        with sigterm_as_ctrl_c():
            result = run_all(loaded, settings, opened, store, options)
    if options["as_json"]:
        print_json(_as_json(result))
    else:
        sys.stdout.flush()  # A sink may have printed text that is still buffered.
        click.echo(_summary(loaded, result), err=True)


def run_one(topology: Topology, settings: RunSettings, store: SnapshotStore, options: dict[str, Any]) -> None:
    """Run one processor, or the negotiator, in this process, until the topology ends.

    The negotiator decides when the processors take a snapshot, and where they start after a crash.
    """
    from hmb.hailstorm.runners.single import serve
    from hmb.hailstorm.topology import NEGOTIATOR

    registry = connect(options["registry"], options["zookeeper"], topology.name)
    leads = options["processor"] == NEGOTIATOR  # Only the negotiator can end the topology with a last snapshot.
    try:
        with sigterm_as_ctrl_c() if leads else nullcontext():
            serve(topology, [options["processor"]], settings, store, registry, options["host"])
    finally:
        registry.close()


def run_all(
    topology: Topology, settings: RunSettings, store: SnapshotStore, path: Path, options: dict[str, Any]
) -> RunResult:
    """Run all processors of the topology, show a live display, and return the result."""
    from hmb.hailstorm.registry import RegistryServer
    from hmb.hailstorm.runners import ProcessRunner, ThreadRunner

    if options["registry"] or options["zookeeper"]:
        raise CliError("--registry and --zookeeper need --processor", 2)
    refuse_second_run(path)
    runner: Runner
    if options["workers"] is None:
        runner = ThreadRunner(topology, settings, store)
    else:
        runner = ProcessRunner(topology, settings, store, options["workers"])
        if options["workers"] > (count := len(runner.processors.by_name)):
            click.echo(f"--workers {options['workers']}: the topology has only {plural(count, 'processor')}", err=True)
    server = RegistryServer(runner.registry)
    try:
        with runner:
            _publish(server.address, registry_file(path))
            return _watch(runner, topology.name, show=sys.stderr.isatty() and not options["quiet"])
    finally:
        registry_file(path).unlink(missing_ok=True)
        server.close()


def _publish(address: tuple[str, int], path: Path) -> None:
    """Write the registry's address to a file. A reader never finds a half-written file.

    Raises CliError if the file cannot be written, for example because the disk is full.
    """
    unfinished = path.with_name(path.name + ".tmp")
    try:
        unfinished.write_text(json.dumps(address), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}") from error


def _watch(runner: Runner, name: str, *, show: bool) -> RunResult:
    """Wait until the topology ends, and return its result. If `show` is true, show a live display meanwhile.

    After the first Ctrl-C, the topology takes a last snapshot and ends. A second Ctrl-C raises KeyboardInterrupt.

    If standard output is a pipe, the program that reads the pipe can end before the topology. The topology's sinks then
    have nowhere to print, so the function raises BrokenPipeError.
    """
    from rich.console import Console
    from rich.live import Live

    from .display import TopologyDisplay

    display, stopping = TopologyDisplay(name), False
    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=4, auto_refresh=False, transient=True) as live:
        while True:
            try:
                while not runner.has_ended():
                    if reader_has_left():
                        raise BrokenPipeError
                    runner.supervise()
                    if show:
                        live.update(display.render(runner.master, runner.living, runner.snapshots), refresh=True)
                    time.sleep(DISPLAY_INTERVAL if show else 0.05)
                return runner.wait()
            except KeyboardInterrupt:
                if stopping:
                    raise
                stopping = True
                what = "The topology takes a last snapshot. A second Ctrl-C or SIGTERM ends it immediately."
                console.print(what, soft_wrap=True)
                runner.request_stop()


def _summary(topology: Topology, result: RunResult) -> str:
    sizes = [
        f"{name} {_size(topology.nodes[name].runs, state)}"
        for name, state in result.states.items()
        if state is not None
    ]
    epochs = "" if result.epochs == 1 else f", epoch {result.epochs}"
    snapshots = plural(result.snapshots, "snapshot")
    late = [f"{name} {count:,}" for name, count in result.late.items()]
    left_out = f"; late tuples left out since the first start: {', '.join(late)}" if late else ""
    dead = [f"{name} {count:,}" for name, count in result.dead.items()]
    left_out += f"; dead letters since the first start: {', '.join(dead)}" if dead else ""
    return f"ended at {result.completed}: {snapshots}{epochs}; states: {', '.join(sizes) or 'none'}{left_out}"


def _size(node: Any, state: Any) -> str:
    """Return the size of a bolt's state as text, for example "3 entries". The bolt is `node`."""
    from hmb.hailstorm.monoids import Sessions

    if node.windows is not None and not isinstance(node.windows, Sessions):
        return plural(len(state), "open window")
    is_container = hasattr(state, "__len__") and not isinstance(state, str | bytes)
    return plural(len(state), "entry", "entries") if is_container else str(state)


def _as_json(result: RunResult) -> dict[str, Any]:
    clock = {} if result.completed is None else {str(p): offset for p, offset in result.completed.items()}
    sizes = {name: len(state) if hasattr(state, "__len__") else None for name, state in result.states.items()}
    return {
        "completed": clock,
        "snapshots": result.snapshots,
        "epochs": result.epochs,
        "state_sizes": sizes,
        "late": result.late,
        "dead_letters": result.dead,
    }
