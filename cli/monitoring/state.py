"""`hmb state`: print the state of a running broker once."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hmb.printable import printable

from ..shared.output import json_option, print_json, print_table
from .opened import SEGMENTS, segments, time_text
from .source import State, StateSource, source_options
from .views import VIEWS, Row, headline, missing, reason

EVENTS_SHOWN = 10
SEGMENT = ("topic", "partition", *SEGMENTS.columns)


@click.command()
@click.argument("views", nargs=-1, type=click.Choice([*VIEWS, "segments", "events"]), metavar="[VIEW]...")
@source_options
@json_option
def command(views: tuple[str, ...], source: StateSource, as_json: bool) -> None:
    """Print the state of a broker that was started with `hmb broker --state PORT`.

    For a broker that was started without --state, use the option -b HOST:PORT.

    VIEW is partitions, groups, requests, clients, segments or events. Without VIEW, the command prints the first
    four views and the last ten events.

    With --json, the command prints the whole state as JSON. With --json and VIEW, it prints only the data of this view.
    """
    with source.opened() as fetch:
        state = fetch()
    if as_json:
        print_json({name: state[name] for name in _parts(views)} if views else state)
        return
    click.echo(headline(state))
    for view in views or VIEWS:
        _print_view(state, view)
    if not views and state["events"]:
        _print_events(state, EVENTS_SHOWN)
    if not views and missing(state):
        click.echo("\nmissing")
        for part, why in missing(state).items():
            click.echo(f"{part}: {why}")


def _parts(views: tuple[str, ...]) -> list[str]:
    """Return which parts of the broker's state are necessary for `views`.

    For example, the view "clients" shows the part "connections" of the state.
    """
    names = {"partitions": "topics", "segments": "topics", "clients": "connections"}
    return list(dict.fromkeys(names.get(view, view) for view in views))


def _print_view(state: State, name: str) -> None:
    if (why := reason(state, name)) is not None:
        click.echo(f"\n{name}: {why}")
        return
    if name == "events":
        _print_events(state, len(state["events"]))
        return
    columns: Sequence[str] = SEGMENT if name == "segments" else VIEWS[name].columns
    rows = _segments(state) if name == "segments" else VIEWS[name].rows(state)
    click.echo(f"\n{name}{'' if rows else ': none'}")
    if rows:
        print_table(columns, [[row[column] for column in columns] for row in rows])


def _segments(state: State) -> list[Row]:
    return [
        {"topic": topic["name"], "partition": partition["partition"]} | segment
        for topic in state["topics"]
        for partition in topic["partitions"]
        for segment in segments(partition)
    ]


def _print_events(state: State, most: int) -> None:
    click.echo("\nevents")
    for event in state["events"][-most:]:
        click.echo(f"{time_text(event['time'])}  {event['kind']}: {printable(event['text'])}")
