"""Commands with many options: `--help` shows them under headings, in the order in which they are declared."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
OTHER = "Options"


class GroupedOption(click.Option):
    """An option that stands under a heading; names in `synonyms` work, but `--help` does not show them."""

    def __init__(self, *arguments: Any, heading: str, synonyms: Sequence[str] = (), **settings: Any) -> None:
        names, *rest = arguments
        super().__init__([*names, *synonyms], *rest, **settings)
        self.heading, self._synonyms = heading, synonyms

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        shown = copy(self)
        shown.opts = [name for name in self.opts if name not in self._synonyms]
        return click.Option.get_help_record(shown, ctx)


class GroupedCommand(click.Command):
    """Shows its options under their headings; those that have none come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(param, "heading", OTHER), []).append(record)
        for heading, records in sorted(sections.items(), key=lambda section: section[0] == OTHER):
            with formatter.section(heading):
                formatter.write_dl(records)


def under(heading: str) -> Callable[..., Callable[[F], F]]:
    """`click.option` for options under this heading."""

    def option(*names: str, **settings: Any) -> Callable[[F], F]:
        return click.option(*names, cls=GroupedOption, heading=heading, **settings)

    return option
