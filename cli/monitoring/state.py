"""`hmb state`: print the state of a running broker once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import click

from ..shared.output import json_option, print_json, print_table
from .source import State, StateSource, source_options
from .views import VIEWS, Row, headline, missing, reason

EVENTS_SHOWN = 10
SEGMENT = ("topic", "partition", "base_offset", "bytes", "offset_index", "time_index", "first_time", "last_time")
EPOCH = datetime(1970, 1, 1)  # UTC


@click.command()
@click.argument("views", nargs=-1, type=click.Choice([*VIEWS, "segments", "events"]), metavar="[VIEW]...")
@source_options
@json_option
def command(views: tuple[str, ...], source: StateSource, as_json: bool) -> None:
    """Print the state of a broker that was started with `hmb broker --state PORT`, or of any broker (-b).

    VIEW is partitions, groups, requests, clients, segments or events. Without VIEW, print the first four views and the
    last ten events. --json prints the whole state as one JSON object.
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
    """Return the parts of the state that contain these views."""
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
        {
            "topic": topic["name"],
            "partition": partition["partition"],
            "base_offset": segment["base_offset"],
            "bytes": segment["bytes"],
            "offset_index": segment["offset_index_entries"],
            "time_index": segment["time_index_entries"],
            "first_time": _time(segment["first_timestamp"]),
            "last_time": _time(segment["max_timestamp"]),
        }
        for topic in state["topics"]
        for partition in topic["partitions"]
        for segment in partition["segments"]
    ]


def _print_events(state: State, most: int) -> None:
    click.echo("\nevents")
    for event in state["events"][-most:]:
        click.echo(f"{_time(event['time'])}  {event['kind']}: {event['text']}")


def _time(timestamp: int | None) -> str | None:
    """Return a time (ms since 1970) in UTC, for example 2026-11-25T12:00:00.250Z."""
    if timestamp is None or timestamp < 0:
        return None
    return f"{(EPOCH + timedelta(milliseconds=timestamp)):%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03}Z"
