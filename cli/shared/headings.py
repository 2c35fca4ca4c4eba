"""Show the options of a command under headings in its `--help`, for commands with many options.

When the code of a command declares an option, it also names the heading of the option. `--help` of a `GroupedCommand`
shows the options under their headings. Options without a heading come last. An option can also have synonyms, for
example the names of the option in Kafka's own tools. `--help` does not show synonyms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
OTHER = "Options"


class GroupedOption(click.Option):
    """An option that `--help` shows under a heading. The option can have synonyms, which `--help` does not show."""

    def __init__(self, *arguments: Any, heading: str = OTHER, synonyms: Sequence[str] = (), **settings: Any) -> None:
        names, *rest = arguments
        super().__init__([*names, *synonyms], *rest, **settings)
        self.heading, self._synonyms = heading, synonyms

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        shown = copy(self)
        shown.opts = [name for name in self.opts if name not in self._synonyms]
        return click.Option.get_help_record(shown, ctx)


class GroupedCommand(click.Command):
    """A command whose `--help` shows options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(param, "heading", OTHER), []).append(record)
        for heading, records in sorted(sections.items(), key=lambda section: section[0] == OTHER):
            with formatter.section(heading):
                formatter.write_dl(records)


def under(heading: str) -> Callable[..., Callable[[F], F]]:
    """Return a decorator that declares an option, as `click.option` does. `--help` shows the option under `heading`."""

    def option(*names: str, **settings: Any) -> Callable[[F], F]:
        return click.option(*names, cls=GroupedOption, heading=heading, **settings)

    return option


def with_options(command: Callable[..., Any], options: Sequence[Callable[[Any], Any]]) -> Callable[..., Any]:
    """Add options to a command.

    `--help` shows the options in groups, each under a heading. The options of one group have the same order as in the
    list `options`.
    """
    for option in reversed(options):
        command = option(command)
    return command
