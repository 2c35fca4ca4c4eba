"""`hmb index-inspect`: compare the entries of an index with its log, and show a look-up step by step.

An offset index has about one entry for every 4 KiB of the log. An entry contains the last offset of a record batch, and
the position (in bytes) at which the batch begins in the log.

For example, a broker looks for offset 23. In the index, the entry `22 -> 500` means that the batch with the
last offset 22 begins at position 500. First, a binary search finds the last entry whose offset is at most 23.
The broker then scans the log from the position in this entry, until it finds the batch that contains offset 23:
    index   11 -> 250   22 -> 500   31 -> 750                     binary search: 22 -> 500
    log     position 500: offsets 19..22, 610: offsets 23..26     scan: found at position 610
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.errors import DAMAGE, NOT_FOUND, CliError
from ..shared.output import json_option, plural, print_json

if TYPE_CHECKING:
    from hmb.storage.dump.inspection import ScanStep, Search, Summary


@click.command()
@click.argument("file", type=click.Path(path_type=Path, readable=False))
@click.option(
    "--lookup", "wanted", type=int, metavar="OFFSET",
    help="Find this offset. If FILE is a .timeindex, the number OFFSET is a timestamp in ms.",
)
@json_option
def command(file: Path, wanted: int | None, as_json: bool) -> None:
    """Print and check FILE, the .index or .timeindex of a log segment.

    The command prints each entry, and how far it is from the previous entry. It compares each entry with the .log
    file in the same directory. The exit code is 5 if an entry is wrong. With --lookup, the command does not print
    the entries. Instead, it shows how a broker finds an offset or a timestamp. It prints the steps of the binary
    search, and the batches that the broker reads in the log.
    """
    from hmb.storage.offset_index import OffsetIndex
    from hmb.storage.time_index import TimeIndex

    suffixes = OffsetIndex.SUFFIX, TimeIndex.SUFFIX
    if not file.exists():
        raise CliError(f"{file}: no such file", NOT_FOUND)
    if file.suffix not in suffixes or not file.stem.isdecimal():
        raise click.UsageError(
            f"{file} is not an index: the name of an index is a base offset with {' or '.join(suffixes)}"
        )
    for needed in (file, file.with_suffix(".log")):
        if not needed.is_file():
            what = "a directory" if needed.is_dir() else "no such file"
            raise CliError(f"{needed}: {what}; an index can be checked only with its log", NOT_FOUND)
    if wanted is None:
        _print_entries(file, as_json)
    else:
        _print_lookup(file, wanted, as_json)


def _print_entries(file: Path, as_json: bool) -> None:
    from hmb.storage.dump.inspection import Summary, inspect
    from hmb.storage.dump.segment_files import IndexReader
    from hmb.storage.time_index import TimeIndex

    is_time_index = file.suffix == TimeIndex.SUFFIX
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
            print_json({"type": "entry", **fields, "problem": entry.problem})
        else:
            problem = "" if entry.problem is None else f"  <- {entry.problem}"
            sys.stdout.write(f"{entry.number:>8} {entry.key:>20} {entry.value:>12} {entry.distance:>12}{problem}\n")
    log_size = file.with_suffix(".log").stat().st_size
    if as_json:
        print_json({"type": "summary", "log_size": log_size, **asdict(summary), "padding": tail.padding})
    else:
        sys.stdout.write(_summary_line(summary, log_size, names[2], tail.padding))
    sys.stdout.flush()
    if summary.mismatches:
        raise CliError(f"{file}: {summary.mismatches} of {summary.entries} entries contradict the log", DAMAGE)
    if tail.problem:
        raise CliError(f"{file}: damaged at position {tail.position}: {tail.problem}", DAMAGE)


def _summary_line(summary: Summary, log_size: int, unit: str, padding: int) -> str:
    text = f"{plural(summary.entries, 'entry', 'entries')} for {plural(log_size, 'byte')} of log"
    if summary.entries:
        text += f", one every {summary.average} {unit} (from {summary.smallest} to {summary.greatest})"
    if padding:
        text += f", {plural(padding, 'byte')} of padding"
    mismatches = plural(summary.mismatches, "mismatch", "mismatches") if summary.mismatches else "no mismatches"
    return f"{text}; {mismatches}\n"


def _print_lookup(file: Path, wanted: int, as_json: bool) -> None:
    from hmb.storage.offset_index import OffsetIndex
    from hmb.storage.time_index import TimeIndex

    is_time_index = file.suffix == TimeIndex.SUFFIX
    offset, base_offset, position = wanted, int(file.stem), 0
    # Each pair is an index search and its result, an offset. If the log ends before this offset, the index is damaged.
    promised: list[tuple[Search, int]] = []
    if is_time_index:
        found = _search(file, wanted, as_json, key="timestamp", below=True)
        offset = base_offset if found.entry is None else found.entry[1]
        promised.append((found, offset))
    elif offset < base_offset:
        raise CliError(f"{offset} is below offset {base_offset}, with which this segment begins", NOT_FOUND)
    offset_index = file.with_suffix(OffsetIndex.SUFFIX)
    if offset_index.exists():
        found = _search(offset_index, offset, as_json, key="offset")
        indexed, position = found.entry or (base_offset, 0)
        promised.append((found, indexed))
    target = {"timestamp": wanted} if is_time_index else {"offset": wanted}
    steps = _print_scan(file.with_suffix(".log"), position, target, as_json)
    if steps and steps[-1].is_found:
        return
    for found, promise in promised:
        if found.entry is not None and (not steps or steps[-1].last_offset < promise):
            raise CliError(f"{found.path}: entry {found.number} points after the end of the log", DAMAGE)
    read = plural(len(steps), "batch", "batches")
    raise CliError(f"{wanted} is after the end of this segment; the scan of the log has read {read}", NOT_FOUND)


def _print_scan(log: Path, position: int, target: dict[str, int], as_json: bool) -> list[ScanStep]:
    from hmb.storage.dump.inspection import scan

    if not as_json:
        sys.stdout.write(f"scan of {log} from position {position}:\n")
    steps = []
    for step in scan(log, position, **target):
        steps.append(step)
        if as_json:
            print_json({"type": "scan", **asdict(step)})
        else:
            verdict = "found" if step.is_found else "continue"
            offsets = f"offsets {step.base_offset}..{step.last_offset}"
            sys.stdout.write(f"  position {step.position}: {offsets}, timestamp {step.max_timestamp}: {verdict}\n")
    return steps


def _search(index: Path, wanted: int, as_json: bool, *, key: str, below: bool = False) -> Search:
    """Print the steps of a binary search. Return its result: the last entry whose key is at most `wanted`.

    If `below` is true, the result is the last entry whose key is lower than `wanted`.

    A search for a timestamp needs `below`. Several records can have the timestamp `wanted`, and the index may
    contain only the last of these records. The user wants the first of them, so the scan of the log must begin at
    an earlier entry.
    """
    from hmb.storage.dump.inspection import search

    found = search(index, wanted, below=below)
    if as_json:
        for step in found.steps:
            print_json({"type": "search", "file": found.path, **asdict(step)})
        print_json({"type": "search_result", "file": found.path, "number": found.number, "entry": found.entry})
        return found
    entries = plural(found.entries, "entry", "entries")
    sys.stdout.write(f"binary search for {key} {found.wanted} in {found.path}, {entries}:\n")
    for step in found.steps:
        side = "right" if step.goes_right else "left"
        middle = f"the middle entry, {step.middle}, has {key} {step.key}"
        sys.stdout.write(f"  entries {step.low}..{step.high}: {middle}: go {side}\n")
    if found.entry is None:
        sys.stdout.write("  all entries are greater: the scan starts at the beginning\n")
    else:
        sys.stdout.write(f"  entry {found.number}: {found.entry[0]} -> {found.entry[1]}\n")
    return found
