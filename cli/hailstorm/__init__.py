"""`hmb hailstorm`: run a topology, watch it, look at its snapshots, check it.

    run         all processors of a topology, in threads or in processes, with a live display; or one processor
    status      what a running topology does: master state, processors, figures
    snapshots   what a snapshot store holds
    check       are the states monoids, and does the result depend on the order?
    registry    a registry for processors that are started one by one
    demo        the examples of the documentation, on real data, with a picture

A topology is named as in `hmb.hailstorm.reference`: `module:name` or `path/to/file.py:name`.
"""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "run": "Run a topology until it ends, or one of its processors.",
    "status": "Show what a running topology does.",
    "snapshots": "List the snapshots of a store.",
    "check": "Look for broken laws, and for results that depend on the order.",
    "registry": "Serve a registry for processors that are started one by one.",
    "demo": "Run an example on real data, and draw its result.",
}


class HailstormGroup(click.Group):
    """Imports a command's module when the command runs, so that help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f".{cmd_name}", __name__).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=HailstormGroup)
def command() -> None:
    """Exactly-once stream processing on commutative monoids: run, watch and check topologies.

    The first steps: hmb broker in one terminal, hmb hailstorm demo trending in another.
    """
