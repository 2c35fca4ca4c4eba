"""`hmb top`: follow a running broker on a terminal, or print its rates once.

This module fetches the state of the broker, reads the user's key presses, and draws the screen. `screen.py`
stores what the user has selected, for example the view and the column for sorting. When the user presses Enter,
`opened.py` makes the table with the details of the selected row, for example the members of a group.
"""

from __future__ import annotations

import math
import re
import sys
import time
from typing import TYPE_CHECKING

import click

from hmb.printable import printable

from ..shared.errors import CliError
from ..shared.output import json_option, print_json, print_table
from .keyboard import opened_keyboard
from .opened import with_opened
from .rates import Rates
from .screen import Screen, ScreenTable
from .source import Fetch, StateSource, source_options
from .views import VIEWS, headline, reason

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions, RenderableType

KEYS = (
    "p partitions, g groups, r requests, c clients, s sort, / filter, q quit",
    "up and down select a row, Enter opens it, Esc goes back",
)
DATE = re.compile(r"^\d{4}-\d\d-\d\dT(?=\d\d:\d\d:)")  # the beginning of 2026-11-26T12:00:00.250Z
WIDE = 120  # columns; on a narrower terminal, `hmb top` shows times without their dates
RESERVE = 5.0  # seconds; if the next update is late, the broker continues to record requests for this time


@click.command()
@click.argument("view", type=click.Choice(list(VIEWS)), default="partitions")
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds between two updates."
)
@click.option("--once", is_flag=True, help="Measure during one interval, print the rows, and end.")
@source_options
@json_option
def command(view: str, interval: float, once: bool, source: StateSource, as_json: bool) -> None:
    """Watch a broker's partitions, groups, requests or clients.

    The broker must be started with `hmb broker --state PORT`. To watch a broker that was started without --state,
    use the option -b HOST:PORT.

    VIEW is partitions, groups, requests or clients. The column `rate` shows records, commits or requests per
    second. The column `trend` shows whether the lag of a group is growing or shrinking.

    Press Enter to see the details of the selected row. The details of a partition are its segments, the details of
    a group are its members, and the details of an API are its slowest requests.

    With --once --json, the command prints one JSON object for each row. The field `opened` contains the details of
    a partition, a group or an API.
    """
    if as_json and not once:
        raise click.UsageError("--json prints one measurement: add --once")
    screen = Screen(view)
    with source.opened() as fetch:
        rates = Rates(fetch(_recording(screen, interval)))
        if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise click.UsageError("hmb top needs a terminal; in a script, use --once")
        if once:
            time.sleep(interval)
            rates.update(fetch(_recording(screen, interval)))
            _print_once(screen, rates, as_json)
        else:
            _follow(screen, rates, fetch, interval)


def _recording(screen: Screen, interval: float) -> int:
    """Return for how many seconds from now the broker must record requests.

    A broker records requests only when a client asks for a recording. In `hmb top`, only the view `requests` shows
    recorded requests. For every other view, the result is 0.
    """
    return math.ceil(interval + RESERVE) if screen.view == "requests" else 0


def _print_once(screen: Screen, rates: Rates, as_json: bool) -> None:
    table = screen.table(rates)
    if as_json:
        for row in table.rows:
            print_json(with_opened(screen.view, row))
        return
    click.echo(headline(rates.state))
    if reason(rates.state, screen.view) is not None:
        click.echo("\n".join(table.heading))
        return
    print_table(table.columns, [[row[column] for column in table.columns] for row in table.rows])


def _follow(screen: Screen, rates: Rates, fetch: Fetch, interval: float) -> None:
    """Draw the screen until the user presses q. If the broker does not answer, show a note and try again."""
    from rich.live import Live

    problem: str | None = None
    due = time.monotonic() + interval
    with opened_keyboard() as keyboard, Live(auto_refresh=False, screen=True) as live:
        while not screen.is_over:
            live.update(_rendered(screen, rates, problem, live.console.size), refresh=True)
            for key in keyboard.read(max(0.0, due - time.monotonic())):
                screen.press(key)
            if time.monotonic() < due:
                continue
            try:
                rates.update(fetch(_recording(screen, interval)))
                problem = None
            except CliError as error:
                problem = str(error)
            due = time.monotonic() + interval


def _rendered(screen: Screen, rates: Rates, problem: str | None, size: ConsoleDimensions) -> RenderableType:
    """Draw the lines above the table. Fill the rest of the terminal with the selected row and rows around it."""
    from rich.console import Group
    from rich.text import Text

    table, choices = screen.table(rates), screen.choices
    lines = [(headline(rates.state), "bold"), *((each, "dim") for each in KEYS)]
    if choices.filter or screen.is_typing:
        lines.append((f"filter: {choices.filter}{'_' if screen.is_typing else ''}", ""))
    if problem is not None:
        lines.append((f"trying again: {problem}", "red"))
    heading = [printable(line) for line in table.heading]
    space = max(1, size.height - len(lines) - len(heading) - 2)  # 2: the line of the column names, and an empty line
    first = max(0, min(table.selected - space // 2, len(table.rows) - space))
    last = min(first + space, len(table.rows))
    if last - first < len(table.rows):
        heading[0] += f", rows {first + 1} to {last} of {len(table.rows):,}"
    lines += [(each, "") for each in heading]
    drawn = (Text(text, style, no_wrap=True, overflow="ellipsis") for text, style in lines)
    return Group(*drawn, _grid(table, choices.sorted_by, first, last, size.width))


def _grid(table: ScreenTable, sorted_by: str, first: int, last: int, width: int) -> RenderableType:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for column in table.columns:
        grid.add_column(Text(column, style="reverse" if column == sorted_by else "", no_wrap=True))
    for number, row in enumerate(table.rows[first:last], first):
        cells = (Text(_cell(row[column], width), no_wrap=True, overflow="ellipsis") for column in table.columns)
        grid.add_row(*cells, style="reverse" if number == table.selected else "")
    return grid


def _cell(value: object, width: int) -> str:
    """Return a value as text. On a narrow terminal, shorten a date and time to the time, so that more columns fit."""
    if value is None:
        return "-"
    if isinstance(value, int | float):
        return f"{value:,}"
    text = printable(str(value))
    return DATE.sub("", text) if width < WIDE else text
