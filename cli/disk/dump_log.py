"""`hmb dump-log`: what is in the files of a log, in the lines of Kafka's DumpLogSegments, as hex, a tree or JSON."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.common import DAMAGE, ERROR, NOT_FOUND, CliError, json_option

if TYPE_CHECKING:
    from hmb.storage.dump.entries import Entry

LARGE_FILE = 64 << 20  # bytes; a larger one shows its progress
PROGRESS_INTERVAL = 0.2  # seconds


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, readable=False), metavar="FILE...")
@click.option("--files", "listed", metavar="FILE,FILE", default="", help="The same, as Kafka's tool takes it.")
@click.option("--deep-iteration", is_flag=True, help="Show the records inside the batches.")
@click.option("--print-data-log", is_flag=True, help="Show their keys and values too.")
@click.option("--offsets-decoder", is_flag=True, help="Show the records of __consumer_offsets as what they mean.")
@click.option("--transaction-log-decoder", is_flag=True, help="The same for those of __transaction_state.")
@click.option("--index-sanity-check", is_flag=True, help="Check indexes only as a broker does at its start.")
@click.option("--hex", "as_hex", is_flag=True, help="Show each byte with its field.")
@click.option("--tree", "as_tree", is_flag=True, help="Show segments, batches and records with sizes and offsets.")
@click.option(
    "--verify", is_flag=True, help="Check everything, show only what is damaged, and a line of what was checked."
)
@json_option
def command(
    files: tuple[Path, ...],
    listed: str,
    deep_iteration: bool,
    print_data_log: bool,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    index_sanity_check: bool,
    as_hex: bool,
    as_tree: bool,
    verify: bool,
    as_json: bool,
) -> None:
    """Print what is in .log, .index, .timeindex, .txnindex and .snapshot files, checkpoints, and the files of metadata.

    A FILE may be the directory of a partition: then its files, segment by segment; or a data directory: then those of
    all partitions. Damage is named on standard error with its position, and the command ends with exit code 5; with 1
    where a FILE is none of a log's.
    """
    from hmb.coordinator.journal_decoder import decode_offsets, decode_transactions
    from hmb.storage.dump.entries import DumpOptions, View
    from hmb.storage.dump.log_files import dump

    if as_hex + as_tree + verify > 1:
        raise click.UsageError("--hex, --tree and --verify exclude each other")
    if offsets_decoder and transaction_log_decoder:
        raise click.UsageError("--offsets-decoder and --transaction-log-decoder exclude each other")
    view = View.HEX if as_hex else View.TREE if as_tree else View.LINES
    progress = _Progress(sys.stderr.isatty() and (verify or not sys.stdout.isatty()))
    decode = decode_offsets if offsets_decoder else decode_transactions if transaction_log_decoder else None
    options = DumpOptions(deep_iteration, print_data_log, index_sanity_check, verify, view, progress.show, decode)
    paths = _existing([*files, *map(Path, filter(None, listed.split(",")))])
    damages = unknown = 0
    summary = None
    for entry in dump(paths, options):
        damages += entry.is_damage
        unknown += entry.kind == "unknown_file"
        if entry.kind == "verified" and not as_json:  # of one file after the other, and at last of all
            summary = entry
            continue
        progress.clear()
        _print(entry, verify, as_json)
    progress.clear()
    if summary is not None:
        click.echo(summary.line())
    sys.stdout.flush()
    if damages:
        raise CliError(f"damage found in {damages} place{'s' * (damages > 1)}", DAMAGE)
    if unknown:
        click.get_current_context().exit(ERROR)  # each is named


def _print(entry: "Entry", verify: bool, as_json: bool) -> None:
    is_unknown = entry.kind == "unknown_file"
    is_complaint = is_unknown or entry.kind in ("damage", "finding")
    if as_json:
        sys.stdout.write(json.dumps({"type": entry.kind, **entry.fields()}, ensure_ascii=False) + "\n")
    elif not is_complaint or (is_unknown and not verify):  # which Kafka's tool says on standard output
        sys.stdout.write(entry.line() + "\n")
    if is_complaint:
        sys.stdout.flush()  # so that a terminal shows it where it belongs
        text = f"{entry.fields()['file']}: not checked: no file of a log" if is_unknown else entry.line()
        click.echo(f"hmb: {text}", err=True)


class _Progress:
    """How far a large file is read: a line on a terminal, wanted where the output goes elsewhere or is short."""

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._next = time.monotonic() + PROGRESS_INTERVAL
        self._is_shown = False

    def show(self, path: Path, position: int) -> None:
        if not self._is_wanted or (now := time.monotonic()) < self._next:
            return
        self._next = now + PROGRESS_INTERVAL
        size = path.stat().st_size
        if size >= LARGE_FILE:
            self._is_shown = True
            sys.stderr.write(f"\r{path.name}: {position >> 20} of {size >> 20} MB, {100 * position // size} %\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Before anything else is written."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _existing(paths: list[Path]) -> list[Path]:
    from hmb.storage.dump.log_files import log_files

    if not paths:
        raise click.UsageError("name a file of a log, or the directory of a partition")
    for path in paths:
        if not path.exists():
            raise CliError(f"{path}: no such file or directory", NOT_FOUND)
        if path.is_dir() and not log_files(path):
            raise CliError(
                f"{path}: no log files in this directory; name that of a partition, or a data directory", NOT_FOUND
            )
    return paths
