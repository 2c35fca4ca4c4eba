"""`hmb hailstorm`: commands that run topologies, and show their state.

`hmb hailstorm` has these commands:
    run         runs all processors of a topology in threads or in processes, or runs only one processor
    status      shows the state of a running topology and its processors
    snapshots   lists the snapshots of a store
    check       tests whether states are monoids, and whether the result depends on the order of tuples
    registry    runs a registry, through which processors in separate processes find each other
    demo        runs an example of the documentation on real data, and draws the result

Several commands of `hmb hailstorm` use the modules `arguments` (common arguments) and `display` (a running topology on
a terminal). The folder `examples/` contains the topologies of `hmb hailstorm demo`.

The user of `hmb hailstorm` names a topology as `module:name` or as `path/to/file.py:name` (see
`hmb.hailstorm.reference`).
"""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "run": "Run a topology until it ends, or one of its processors.",
    "status": "Show the state of a running topology.",
    "snapshots": "List the snapshots of a store.",
    "check": "Look for broken laws, and for results that depend on the order of tuples.",
    "registry": "Serve a registry for processors in processes of their own.",
    "demo": "Run an example on real data, and draw its result.",
}


class HailstormGroup(click.Group):
    """The group of the commands of `hmb hailstorm`.

    Its `--help` is quick, because it does not import the modules of the commands.
    """

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


@click.group("hailstorm", cls=HailstormGroup)
def command() -> None:
    """Run, watch and check topologies: exactly-once stream processing on commutative monoids.

    First step: run hmb hailstorm demo trending.
    """
