"""`hmb hailstorm snapshots`: list the snapshots of a store."""

from __future__ import annotations

from pathlib import Path

import click

from ..shared.errors import DAMAGE, NOT_FOUND, CliError
from ..shared.output import json_option, print_json
from .arguments import errors_as_lines, store_argument


@click.command("snapshots")
@store_argument
@json_option
def command(store: Path, as_json: bool) -> None:
    """List the snapshots of a store, with the processor, clock, epoch and size of each snapshot.

    The exit code is 5 if a snapshot is damaged.
    """
    from hmb.hailstorm.snapshots import open_store

    if not store.exists():
        raise CliError(f"{store} does not exist", NOT_FOUND)
    with errors_as_lines():
        opened = open_store(store)
        completed, listed = opened.completed(), opened.list()
    if as_json:
        for each in listed:
            clock = {str(partition): offset for partition, offset in each.clock.items()}
            print_json({**each._asdict(), "clock": clock, "complete": each.clock == completed})
    else:
        click.echo(f"complete clock: {completed}")
        for each in listed:
            note = f"DAMAGED: {each.error}" if each.error else "" if each.clock == completed else "(not complete)"
            click.echo(f"{each.processor:16} epoch {each.epoch:4} {each.size:12,} bytes  {each.clock} {note}".rstrip())
    if any(each.error for each in listed):
        click.get_current_context().exit(DAMAGE)
