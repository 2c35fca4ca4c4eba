"""The command `hmb bench show`, which prints tables of the stored runs of benchmarks."""

from __future__ import annotations

from pathlib import Path

import click

from .origin import by_origin, view_of
from .tables import text


@click.command("show")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(files: tuple[Path, ...]) -> None:
    """Print the tables of stored runs, even of a benchmark that was interrupted.

    FILES are files of samples. Without FILES the command takes the newest run of each benchmark in hmb-bench/, or else
    the newest published run. Only runs of the same machine and scale share a table.
    """
    for origin, samples in by_origin(files).items():
        click.echo(f"{origin.suite}: {origin}")
        for line in text(view_of(origin.suite).tables(samples)):
            click.echo(f"  {line}")
