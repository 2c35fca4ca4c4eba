"""`hmb dump-log`: print the contents of a log's files.

The output of `hmb dump-log` has one of four forms: the lines of Kafka's tool DumpLogSegments, bytes, a tree, or JSON.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.errors import DAMAGE, ERROR, NOT_FOUND, CliError
from ..shared.output import json_option, plural, to_json

if TYPE_CHECKING:
    from hmb.storage.dump.entries import DumpOptions, Entry

LARGE_FILE = 64 << 20  # bytes; the command shows its progress only in files of at least this size
PROGRESS_INTERVAL = 0.2  # seconds


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, readable=False), metavar="FILE...")
@click.option(
    "--files", "listed", metavar="FILE,FILE", default="", help="The files, separated by commas, as in Kafka's tool."
)
@click.option("--deep-iteration", is_flag=True, help="Show each record of the batches.")
@click.option("--print-data-log", is_flag=True, help="Show each record with its key and value.")
@click.option("--offsets-decoder", is_flag=True, help="Decode the records of __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode the records of __transaction_state.")
@click.option("--share-group-state-decoder", is_flag=True, help="Decode the records of __share_group_state.")
@click.option("--index-sanity-check", is_flag=True, help="For an index, check only what a broker checks at its start.")
@click.option("--hex", "as_hex", is_flag=True, help="Show the bytes of each field.")
@click.option(
    "--tree", "as_tree", is_flag=True, help="Show a tree of segments, batches and records, with sizes and offsets."
)
@click.option("--verify", is_flag=True, help="Check all files. Show only damage and a summary.")
@json_option
def command(
    files: tuple[Path, ...],
    listed: str,
    deep_iteration: bool,
    print_data_log: bool,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    share_group_state_decoder: bool,
    index_sanity_check: bool,
    as_hex: bool,
    as_tree: bool,
    verify: bool,
    as_json: bool,
) -> None:
    """Print the contents of a log's files: .log, .index, .timeindex, .txnindex, .snapshot, and checkpoints.

    FILE can also be the directory of a partition, or the data directory of a broker. The command then prints all
    files in the directory, segment by segment. It leaves out empty files. If a file is damaged, the command reports
    the position of the damage on standard error.

    The exit code is 5 if a file is damaged. If no file is damaged, but a FILE does not belong to a log, the exit
    code is 1.
    """
    from hmb.coordinator.journal_decoder import decode_offsets, decode_share_state, decode_transactions
    from hmb.storage.dump.entries import DumpOptions, View

    if as_hex + as_tree + verify > 1:
        raise click.UsageError("--hex, --tree and --verify cannot be combined")
    decoders = {
        "--offsets-decoder": (offsets_decoder, decode_offsets),
        "--transaction-log-decoder": (transaction_log_decoder, decode_transactions),
        "--share-group-state-decoder": (share_group_state_decoder, decode_share_state),
    }
    chosen = {name: decode for name, (is_chosen, decode) in decoders.items() if is_chosen}
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot be combined")
    view = View.HEX if as_hex else View.TREE if as_tree else View.LINES
    progress = _FileProgress(sys.stderr.isatty() and (verify or not sys.stdout.isatty()))
    decode = next(iter(chosen.values()), None)
    options = DumpOptions(deep_iteration, print_data_log, index_sanity_check, verify, view, progress.show, decode)
    _dump([*files, *map(Path, filter(None, listed.split(",")))], options, progress, as_json)


def _dump(paths: list[Path], options: DumpOptions, progress: _FileProgress, as_json: bool) -> None:
    """Print the entries of all files. Raises CliError if one of the files is damaged."""
    from hmb.storage.dump.log_files import dump

    _check_paths(paths)
    damages = unknown = 0
    summary = None
    for entry in dump(paths, options):
        damages += entry.is_damage
        unknown += entry.kind == "unknown_file"
        if entry.kind == "verified" and not as_json:  # The last summary counts all files. Print only this one.
            summary = entry
            continue
        progress.clear()
        _print(entry, options.verify, as_json)
    progress.clear()
    if summary is not None:
        click.echo(summary.line())
    sys.stdout.flush()
    if damages:
        raise CliError(f"damage found in {plural(damages, 'place')}", DAMAGE)
    if unknown:  # `_print` has already reported each unknown file.
        click.get_current_context().exit(ERROR)


def _check_paths(paths: list[Path]) -> None:
    from hmb.storage.dump.log_files import log_files

    if not paths:
        raise click.UsageError("name a file of a log, or the directory of a partition")
    for path in paths:
        if not path.exists():
            raise CliError(f"{path}: no such file or directory", NOT_FOUND)
        if path.is_dir() and not log_files(path):
            what = "no log files in this directory; name the directory of a partition, or a data directory"
            raise CliError(f"{path}: {what}", NOT_FOUND)


def _print(entry: Entry, verify: bool, as_json: bool) -> None:
    from hmb.storage.dump.log_files import as_json_fields

    is_unknown = entry.kind == "unknown_file"
    is_complaint = is_unknown or entry.kind in ("damage", "finding")
    # click.echo would flush the output after each line of a long dump. So use sys.stdout.write, which does not.
    if as_json:
        sys.stdout.write(to_json(as_json_fields(entry)) + "\n")
    elif not is_complaint or (is_unknown and not verify):  # Kafka's DumpLogSegments lists unknown files, too.
        sys.stdout.write(entry.line() + "\n")
    if is_complaint:
        sys.stdout.flush()  # Standard error must not overtake standard output.
        text = f"{entry.fields()['file']}: not checked: not a file of a log" if is_unknown else entry.line()
        click.echo(f"hmb: {text}", err=True)


class _FileProgress:
    """A line on the terminal that shows how much of a large file has been read."""

    def __init__(self, is_enabled: bool) -> None:
        self._is_enabled = is_enabled
        self._next = time.monotonic() + PROGRESS_INTERVAL
        self._is_shown = False

    def show(self, path: Path, position: int) -> None:
        if not self._is_enabled or (now := time.monotonic()) < self._next:
            return
        self._next = now + PROGRESS_INTERVAL
        size = path.stat().st_size
        if size >= LARGE_FILE:
            self._is_shown = True
            sys.stderr.write(f"\r{path.name}: {position >> 20} of {size >> 20} MB, {100 * position // size} %\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the progress line from the terminal, so that other output can follow."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
