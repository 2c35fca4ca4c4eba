"""Dumping the files of a log: the functions read one batch or entry after the other, and so need little memory.

`dump` reads files of a data directory and yields their entries, in one of three views:
- lines: the lines that Kafka 4.3's DumpLogSegments prints, in the same order. After the last file, `dump`
  reports where files disagree, for example an index and its log.
- hex: each byte with the name of its field (hexadecimal.py).
- tree: segments, batches and records with their sizes (tree.py).

With the option `verify`, the dump reads all bytes of the files. It shows only the damage, a summary of each file, and
the names of files whose format it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path

from hmb.storage.dump.entries import (
    BatchEntry,
    DamageEntry,
    DumpOptions,
    Entry,
    FileHeading,
    NoteEntry,
    RecordEntry,
    UnknownFileEntry,
    VerifiedEntry,
    View,
)
from hmb.storage.dump.findings import FEW, MAX_FINDINGS, Findings
from hmb.storage.dump.hexadecimal import index_fields, log_fields, snapshot_fields, state_fields, transaction_fields
from hmb.storage.dump.indexes import read_index, read_snapshot, read_time_index, read_transaction_index
from hmb.storage.dump.segments import read_log
from hmb.storage.dump.state_files import STATE_FILES, read_state
from hmb.storage.dump.tree import file_node, log_tree
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.time_index import TimeIndex
from hmb.storage.transaction_index import TransactionIndex

Reader = Callable[[BufferedReader, Path, DumpOptions, Findings], Iterator[Entry]]

PARTITION = re.compile(r".+-\d+")  # the name of a partition's directory
# READERS maps the suffix of a file's name to the functions that read this file, one for each view. State files have no
# common suffix, so their key is an empty string.
STATE = ""
READERS: dict[str, dict[View, Reader]] = {
    ".log": {View.LINES: read_log, View.HEX: log_fields, View.TREE: log_tree},
    OffsetIndex.SUFFIX: {View.LINES: read_index, View.HEX: index_fields, View.TREE: file_node},
    TimeIndex.SUFFIX: {View.LINES: read_time_index, View.HEX: index_fields, View.TREE: file_node},
    TransactionIndex.SUFFIX: {View.LINES: read_transaction_index, View.HEX: transaction_fields, View.TREE: file_node},
    ".snapshot": {View.LINES: read_snapshot, View.HEX: snapshot_fields, View.TREE: file_node},
    STATE: {View.LINES: read_state, View.HEX: state_fields, View.TREE: file_node},
}


def dump(paths: Iterable[Path], options: DumpOptions) -> Iterator[Entry]:
    """Yield the entries of these files, and of the files in these directories. Raises FileNotFoundError."""
    findings = Findings(FEW if options.verify else MAX_FINDINGS)
    files = (file for path in paths for file in _files_of(path, options.verify))
    if options.verify:
        yield from _verified(files, options, findings)
    else:
        for file in files:
            yield from _entries(file, options, findings)
    yield from (entry for entry in findings.entries() if entry.is_damage or not options.verify)


def _files_of(path: Path, verify: bool) -> list[Path]:
    """Return the files to dump: `path` itself, or the files in `path` if it is a directory.

    If `verify` is false, leave out the empty files of a directory.
    """
    if not path.is_dir():
        return [path]
    return [file for file in log_files(path) if verify or file.stat().st_size]


def as_json_fields(entry: Entry) -> dict[str, object]:
    """Return an entry as one JSON object."""
    return {"type": entry.kind, **entry.fields()}


def log_files(directory: Path, *, is_data_dir: bool = True) -> list[Path]:
    """Return the files in `directory` that a dump can show.

    If `directory` is a data directory, the result also contains the files of its partitions.
    """
    segments, others, partitions = [], [], list[Path]()
    for path in directory.iterdir():
        if path.is_dir():
            partitions += [path] if is_data_dir and PARTITION.fullmatch(path.name) else []
        elif path.name in STATE_FILES:
            others.append(path)
        elif path.suffix in READERS and path.stem.isdecimal():
            segments.append(path)
    files = sorted(segments, key=lambda path: (path.stem, list(READERS).index(path.suffix))) + sorted(others)
    return files + [file for partition in sorted(partitions) for file in log_files(partition, is_data_dir=False)]


def _entries(path: Path, options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    if options.view is not View.TREE:
        yield FileHeading(path)
    kind = STATE if path.name in STATE_FILES else path.suffix or None
    nameless = not path.stem.isdecimal()  # Without the base offset in its name, an index cannot be read.
    if kind not in READERS or (nameless and kind in (OffsetIndex.SUFFIX, TimeIndex.SUFFIX)):
        yield UnknownFileEntry(path)
        return
    try:
        with path.open("rb") as file:
            yield from READERS[kind][options.view](file, path, options, findings)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and error.filename != str(path):
            yield DamageEntry(path, 0, f"the file cannot be checked, because {error.filename} is missing")
        elif options.verify:  # With --verify, report the unreadable file, and continue with the next file.
            yield DamageEntry(path, 0, f"the file cannot be read: {error.strerror}")
        else:
            raise


def _verified(files: Iterable[Path], options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    """Yield reports of damage and a summary for each file. For several files, also yield a total summary."""
    total = VerifiedEntry(None, 0, 0, 0, 0, 0, 0)
    for path in files:
        batches = records = entries = unknown = 0
        damages = -findings.damages
        for entry in _entries(path, options, findings):
            if entry.is_damage:
                damages += 1
                yield entry
            elif isinstance(entry, UnknownFileEntry):
                unknown += 1
                yield entry
            batches += isinstance(entry, BatchEntry)
            records += isinstance(entry, RecordEntry)
            entries += not entry.is_damage and not isinstance(entry, FileHeading | NoteEntry)
        if unknown:
            continue
        counts = (path.stat().st_size, batches, records, entries - batches - records, damages + findings.damages)
        verified = VerifiedEntry(path, 1, *counts)
        yield verified
        total = total.plus(verified)
    if total.files > 1:
        yield total
