"""The command `hmb bench show`, which prints tables of the stored runs of benchmarks."""

from __future__ import annotations

from pathlib import Path

import click

from .origin import by_origin, view_of
from .tables import text


@click.command("show")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(files: tuple[Path, ...]) -> None:
    """Print the tables of stored benchmark runs, including interrupted runs.

    FILES are files of results. Without FILES, the command reads the newest run of each benchmark in hmb-bench/. If
    this folder contains no runs, the command reads the newest published runs.

    Runs on different machines are in separate tables. Full runs and shorter runs (`--scale 0.1`) are also in separate
    tables.
    """
    for origin, samples in by_origin(files).items():
        click.echo(f"{origin.suite}: {origin}")
        for line in text(view_of(origin.suite).tables(samples)):
            click.echo(f"  {line}")
