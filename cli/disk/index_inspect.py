"""`hmb index-inspect`: the entries of an index against its log, and a look-up step by step."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.common import DAMAGE, NOT_FOUND, CliError, json_option

if TYPE_CHECKING:
    from hmb.storage.dump.inspection import ScanStep, Search, Summary

INDEX, TIME_INDEX = ".index", ".timeindex"


@click.command()
@click.argument("file", type=click.Path(path_type=Path, readable=False))
@click.option(
    "--lookup", "wanted", type=int, metavar="OFFSET", help="Find this offset; in a .timeindex this timestamp."
)
@json_option
def command(file: Path, wanted: int | None, as_json: bool) -> None:
    """Look into FILE, the .index or .timeindex of a log segment.

    Prints each entry with its distance to the one before. An entry that disagrees with the .log beside it is
    named, and the command ends with exit code 5. With --lookup it shows how a broker finds an offset: the steps of the
    binary search, then the batches that it reads in the log.
    """
    if not file.exists():
        raise CliError(f"{file}: no such file", NOT_FOUND)
    if file.suffix not in (INDEX, TIME_INDEX) or not file.stem.isdecimal():
        raise click.UsageError(
            f"{file} is no index: its name is the segment's first offset and {INDEX} or {TIME_INDEX}"
        )
    for needed in (file, file.with_suffix(".log")):
        if not needed.is_file():
            what = "a directory" if needed.is_dir() else "no such file"
            raise CliError(f"{needed}: {what}; an index is looked at beside its log", NOT_FOUND)
    if wanted is None:
        _print_entries(file, as_json)
    else:
        _print_lookup(file, wanted, as_json)


def _print_entries(file: Path, as_json: bool) -> None:
    from hmb.storage.dump.inspection import Summary, inspect
    from hmb.storage.dump.segment_files import IndexReader

    is_time_index = file.suffix == TIME_INDEX
    names = ("timestamp", "offset", "offsets") if is_time_index else ("offset", "position", "bytes")
    if not as_json:
        sys.stdout.write(f"{'entry':>8} {names[0]:>20} {names[1]:>12} {'+ ' + names[2]:>12}\n")
    summary, covered = Summary(), 0
    with IndexReader(file) as index:
        tail = index.tail()
    for entry in inspect(file):
        covered += entry.distance
        summary = summary.plus(entry, covered)
        if as_json:
            fields = {"entry": entry.number, names[0]: entry.key, names[1]: entry.value, "distance": entry.distance}
            _print_json({"type": "entry", **fields, "problem": entry.problem})
        else:
            problem = "" if entry.problem is None else f"  <- {entry.problem}"
            sys.stdout.write(f"{entry.number:>8} {entry.key:>20} {entry.value:>12} {entry.distance:>12}{problem}\n")
    log_size = file.with_suffix(".log").stat().st_size
    if as_json:
        _print_json({"type": "summary", "log_size": log_size, **asdict(summary), "padding": tail.padding})
    else:
        sys.stdout.write(_summary_line(summary, log_size, names[2], tail.padding))
    sys.stdout.flush()
    if summary.mismatches:
        raise CliError(f"{file}: {summary.mismatches} of {summary.entries} entries disagree with the log", DAMAGE)
    if tail.problem:
        raise CliError(f"{file}: damaged at position {tail.position}: {tail.problem}", DAMAGE)


def _summary_line(summary: "Summary", log_size: int, unit: str, padding: int) -> str:
    from hmb.storage.dump.entries import counted

    text = f"{counted(summary.entries, 'entry', 'entries')} for {counted(log_size, 'byte')} of log"
    if summary.entries:
        text += f", one every {summary.average} {unit} (from {summary.smallest} to {summary.greatest})"
    if padding:
        text += f", {counted(padding, 'byte')} of padding"
    mismatches = counted(summary.mismatches, "mismatch", "mismatches") if summary.mismatches else "no mismatches"
    return f"{text}; {mismatches}\n"


def _print_lookup(file: Path, wanted: int, as_json: bool) -> None:
    from hmb.storage.dump.entries import counted
    from hmb.storage.dump.inspection import search

    offset, base_offset, position = wanted, int(file.stem), 0
    promised: list[tuple[Search, int]] = []  # entries, and the offsets that must be in the log because of them
    if file.suffix == TIME_INDEX:
        found = search(file, wanted, below=True)
        _print_search(found, "timestamp", as_json)
        offset = base_offset if found.entry is None else found.entry[1]
        promised.append((found, offset))
    elif offset < base_offset:
        raise CliError(f"{offset} is before this segment, which starts at offset {base_offset}", NOT_FOUND)
    if file.with_suffix(INDEX).exists():
        found = search(file.with_suffix(INDEX), offset)
        _print_search(found, "offset", as_json)
        indexed, position = found.entry or (base_offset, 0)
        promised.append((found, indexed))
    target = {"timestamp": wanted} if file.suffix == TIME_INDEX else {"offset": wanted}
    steps = _print_scan(file.with_suffix(".log"), position, target, as_json)
    if steps and steps[-1].is_found:
        return
    for found, promise in promised:
        if found.entry is not None and (not steps or steps[-1].last_offset < promise):
            raise CliError(f"{found.path}: entry {found.number} points behind the end of the log", DAMAGE)
    raise CliError(
        f"{wanted} is behind the end of this segment ({counted(len(steps), 'batch', 'batches')} read)", NOT_FOUND
    )


def _print_scan(log: Path, position: int, target: dict[str, int], as_json: bool) -> "list[ScanStep]":
    from hmb.storage.dump.inspection import scan

    if not as_json:
        sys.stdout.write(f"scan of {log} from position {position}:\n")
    steps = []
    for step in scan(log, position, **target):
        steps.append(step)
        if as_json:
            _print_json({"type": "scan", **asdict(step)})
        else:
            verdict = "here it is" if step.is_found else "go on"
            offsets = f"offsets {step.base_offset}..{step.last_offset}"
            sys.stdout.write(f"  position {step.position}: {offsets}, timestamp {step.max_timestamp}: {verdict}\n")
    return steps


def _print_search(search: "Search", key: str, as_json: bool) -> None:
    from hmb.storage.dump.entries import counted

    if as_json:
        for step in search.steps:
            _print_json({"type": "search", "file": str(search.path), **asdict(step)})
        _print_json({"type": "search_result", "file": str(search.path), "number": search.number, "entry": search.entry})
        return
    sys.stdout.write(
        f"binary search for {key} {search.wanted} in {search.path}, {counted(search.entries, 'entry', 'entries')}:\n"
    )
    for step in search.steps:
        side = "right" if step.goes_right else "left"
        sys.stdout.write(
            f"  entries {step.low}..{step.high}: the middle one, {step.middle}, has {key} {step.key}: go {side}\n"
        )
    if search.entry is None:
        sys.stdout.write("  no entry is that small: start at the beginning\n")
    else:
        sys.stdout.write(f"  entry {search.number}: {search.entry[0]} -> {search.entry[1]}\n")


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
