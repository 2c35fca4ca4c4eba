"""`hmb hailstorm status`: show the state of a running topology."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.output import json_option, print_json
from .arguments import AddressType, connect, errors_as_lines, running_registry, store_argument

if TYPE_CHECKING:
    from hmb.hailstorm.master import MasterState, Report
    from hmb.hailstorm.registry import Registry

WIDE = 200  # columns
LOOK_TIME = 1.2  # seconds; each processor reports twice in this time, because a rate needs two values


@click.command("status")
@store_argument
@click.option(
    "--registry", type=AddressType(),
    help="The address of the registry, if the processors were started with --processor.",
)
@click.option("--zookeeper", metavar="HOSTS", help="The addresses of ZooKeeper, if it is used as the registry.")
@click.option("--topology", "name", default="topology", help="With --zookeeper: the name of the topology.")
@json_option
def command(
    store: Path, registry: tuple[str, int] | None, zookeeper: str | None, name: str, as_json: bool
) -> None:
    """Show the state of a running topology, and a line of numbers for each processor."""
    from rich.console import Console

    from .display import TopologyDisplay

    with errors_as_lines():
        address = registry or (None if zookeeper else running_registry(store))
        found = connect(address, zookeeper, name)
        view = RegistryWatcher(found)
    display = TopologyDisplay(str(store))
    display.render(view.master, view.living, None)
    time.sleep(LOOK_TIME)
    if as_json:
        print_json(
            {
                "master": view.master and view.master.to_value(),
                "processors": {name: report.to_value() for name, report in view.living.items()},
            }
        )
    else:
        # If the output is not a terminal, the library `rich` would use only 80 columns, so the width is WIDE.
        width = None if sys.stdout.isatty() else WIDE
        Console(width=width).print(display.render(view.master, view.living, None))
    found.close()


class RegistryWatcher:
    """Keeps copies of the values that the registry stores about one topology.

    `master` is the state of the topology. `living` contains the newest report of each running processor.
    """

    def __init__(self, registry: Registry) -> None:
        from hmb.hailstorm.registry.sessions import MASTER

        self.master: MasterState | None = None
        self.living: dict[str, Report] = {}
        self._master_path = MASTER
        self._has_master = threading.Event()
        registry.join("status").watch("", self._watch)
        self._has_master.wait(LOOK_TIME)

    def _watch(self, path: str, value: bytes | None) -> None:
        from hmb.hailstorm.codec import decode
        from hmb.hailstorm.master import MasterState, Report
        from hmb.hailstorm.registry.sessions import LIVING

        if path == self._master_path:
            self.master = None if value is None else MasterState.from_value(decode(value))
            self._has_master.set()
        elif path.startswith(LIVING):
            name = path.removeprefix(LIVING)
            if value is None:
                self.living.pop(name, None)
            else:
                self.living[name] = Report.from_value(decode(value))
