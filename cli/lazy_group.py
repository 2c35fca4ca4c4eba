"""A group of commands that imports a command only when the user runs it.

`hmb --help` should print its text at once. But it is slow to import all commands, because they also import the
broker, the client and the benchmarks. A `LazyGroup` therefore imports the module of a command only when the
user runs this command. For each command, the group has a table entry with two texts: the name of the command's
module, and the line that describes the command in the help. The entries are enough to print the help, and to
complete the names of commands. In each module, the click command has the name `command`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """A command that is not imported yet: the name of its module, and the line that describes it in the help."""

    module: str
    help: str


class LazyGroup(click.Group):
    """A click group that imports a command only when the user runs it.

    `entries` maps the name of each command to its `CommandEntry`. `package` contains the modules of the commands.
    """

    def __init__(self, *args: Any, package: str, entries: Mapping[str, CommandEntry], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._package, self._entries = package, entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._entries:
            return None
        module = importlib.import_module(f"{self._package}.{self._entries[cmd_name].module}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete the name of a command. Unlike the method of `click.Group`, this method imports no command."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        found = {name: entry for name, entry in self._entries.items() if name.startswith(incomplete)}
        return [CompletionItem(name, help=entry.help) for name, entry in found.items()]
