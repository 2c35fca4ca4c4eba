"""`hmb dump-log`: what is in the files of a log, in the lines of Kafka's DumpLogSegments or as JSON."""

import json
import sys
from pathlib import Path

import click

from .common import DAMAGE, NOT_FOUND, CliError, json_option


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--files", "listed", metavar="FILE,FILE", default="", help="The same, as Kafka's tool takes it.")
@click.option("--deep-iteration", is_flag=True, help="Show the records inside the batches.")
@click.option("--print-data-log", is_flag=True, help="Show their keys and values too.")
@click.option("--index-sanity-check", is_flag=True, help="Check indexes only as a broker does at its start.")
@click.option("--verify", is_flag=True, help="Check everything, show only what is damaged.")
@json_option
def command(
    files: tuple[Path, ...],
    listed: str,
    deep_iteration: bool,
    print_data_log: bool,
    index_sanity_check: bool,
    verify: bool,
    as_json: bool,
) -> None:
    """Print what is in .log, .index, .timeindex, .txnindex and .snapshot files.

    A FILE may be the directory of a partition: then its files, segment by segment. Damage is named on standard
    error with its position, and the command ends with exit code 5.
    """
    from hmb.storage.dump import as_json_fields, dump
    from hmb.storage.dump_entries import DumpOptions

    options = DumpOptions(deep_iteration, print_data_log, index_sanity_check, verify)
    damages = 0
    for entry in dump(_existing([*files, *map(Path, filter(None, listed.split(",")))]), options):
        damages += entry.is_damage
        if as_json:
            sys.stdout.write(json.dumps(as_json_fields(entry), ensure_ascii=False) + "\n")
        if entry.kind in ("damage", "finding"):
            sys.stdout.flush()  # so that a terminal shows it where it belongs
            click.echo(f"hmb: {entry.line()}", err=True)
        elif not as_json:
            sys.stdout.write(entry.line() + "\n")
    sys.stdout.flush()
    if damages:
        raise CliError(f"damage found in {damages} place{'s' * (damages > 1)}", DAMAGE)


def _existing(paths: list[Path]) -> list[Path]:
    from hmb.storage.dump import log_files

    if not paths:
        raise click.UsageError("name a file of a log, or the directory of a partition")
    for path in paths:
        if not path.exists():
            raise CliError(f"{path}: no such file or directory", NOT_FOUND)
        if path.is_dir() and not log_files(path):
            raise CliError(f"{path}: no log files in this directory; name that of a partition", NOT_FOUND)
    return paths
