"""`hmb top`: follow a running broker on a terminal, or print its rates once."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..shared.errors import CliError
from ..shared.output import json_option, print_json, print_table
from .rates import Rates, shown_columns
from .source import Fetch, StateSource, source_options
from .views import VIEWS, headline, reason

if TYPE_CHECKING:
    from rich.console import RenderableType

KEYS = "keys: p partitions, g groups, r requests, c clients, s sort, / filter, q quit"


class Screen:
    """The choices of the user: a view, the column by which it is sorted, and a filter."""

    def __init__(self, view: str) -> None:
        self.view = view
        self.sorted_by = VIEWS[view].sorted_by
        self.filter = ""
        self.is_typing = False  # whether the keys that the user presses belong to the filter
        self.is_over = False

    def press(self, key: str) -> None:
        """Change the screen for a key that the user has pressed."""
        if self.is_typing:
            self._type(key)
        elif key == "q":
            self.is_over = True
        elif key == "/":
            self.is_typing, self.filter = True, ""
        elif key == "s":
            columns = shown_columns(self.view)
            self.sorted_by = columns[(columns.index(self.sorted_by) + 1) % len(columns)]
        else:
            chosen = next((name for name in VIEWS if name[0] == key), self.view)
            if chosen != self.view:
                self.view, self.sorted_by = chosen, VIEWS[chosen].sorted_by

    def _type(self, key: str) -> None:
        if key in "\r\n\x1b":  # Enter ends the filter; Escape removes it.
            self.is_typing = False
            self.filter = "" if key == "\x1b" else self.filter
        elif key in "\x7f\b":
            self.filter = self.filter[:-1]
        elif key.isprintable():
            self.filter += key

    def rows(self, rates: Rates) -> list[dict[str, Any]]:
        """Return the sorted rows that match the filter.

        Numbers are in descending order, texts in alphabetical order.
        """
        rows = [row for row in rates.rows(self.view) if self.filter.lower() in " ".join(map(str, row.values())).lower()]
        values = [row[self.sorted_by] for row in rows]
        if any(isinstance(value, str) for value in values):
            return sorted(rows, key=lambda row: str(row[self.sorted_by] or ""))
        return sorted(rows, key=lambda row: -(row[self.sorted_by] or 0))


@click.command()
@click.argument("view", type=click.Choice(list(VIEWS)), default="partitions")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds between two updates."
)
@click.option("--once", is_flag=True, help="Measure during one interval, print the rows, and end.")
@source_options
@json_option
def command(view: str, interval: float, once: bool, source: StateSource, as_json: bool) -> None:
    """Follow a broker that was started with `hmb broker --state PORT`, or any broker (-b).

    VIEW is partitions, groups, requests or clients. The column `rate` shows records, commits or requests per second.
    """
    if as_json and not once:
        raise click.UsageError("--json prints one measurement: add --once")
    with source.opened() as fetch:
        rates = Rates(fetch())
        if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise click.UsageError("hmb top needs a terminal; in a script, use --once")
        if once:
            time.sleep(interval)
            rates.update(fetch())
            _print_once(Screen(view), rates, as_json)
        else:
            _follow(Screen(view), rates, fetch, interval)


def _print_once(screen: Screen, rates: Rates, as_json: bool) -> None:
    rows = screen.rows(rates)
    if as_json:
        for row in rows:
            print_json(row)
        return
    click.echo(headline(rates.state))
    if (why := reason(rates.state, screen.view)) is not None:
        click.echo(f"{screen.view}: {why}")
        return
    columns = shown_columns(screen.view)
    print_table(columns, [[row[column] for column in columns] for row in rows])


def _follow(screen: Screen, rates: Rates, fetch: Fetch, interval: float) -> None:
    """Draw the screen until the user presses q. If the broker does not answer, show a note and try again."""
    from rich.live import Live

    problem: str | None = None
    with _single_keys(), Live(auto_refresh=False, screen=True) as live:
        while not screen.is_over:
            live.update(_rendered(screen, rates, problem), refresh=True)
            if (key := _key(interval)) is not None:
                screen.press(key)
                continue
            try:
                rates.update(fetch())
                problem = None
            except CliError as error:
                problem = str(error)


def _rendered(screen: Screen, rates: Rates, problem: str | None) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    columns = shown_columns(screen.view)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(Text(column, style="reverse" if column == screen.sorted_by else ""))
    for row in screen.rows(rates):
        table.add_row(*(Text(_cell(row[column])) for column in columns))
    lines = [Text(headline(rates.state), style="bold"), Text(KEYS, style="dim")]
    if screen.filter or screen.is_typing:
        lines.append(Text(f"filter: {screen.filter}{'_' if screen.is_typing else ''}"))
    if problem is not None:
        lines.append(Text(f"{problem}; trying again", style="red"))
    why = reason(rates.state, screen.view)
    return Group(*lines, Text(screen.view if why is None else f"{screen.view}: {why}"), table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Let the terminal pass each key to this program at once, and not only after Enter, during a `with` block."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _key(timeout: float) -> str | None:
    """Return the next key that the user presses within `timeout` seconds, or None."""
    import os
    import select

    ready, _, _ = select.select([sys.stdin], [], [], timeout)
    return os.read(sys.stdin.fileno(), 1).decode(errors="replace") if ready else None
