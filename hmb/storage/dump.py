"""Reading the files of a log to show them: batch by batch, entry by entry, in constant memory.

`dump` yields the entries of any file that belongs to a log (`dump_entries` says what they are and how they are
written; `dump_index` reads the small files).  The lines are those of Kafka 4.3's DumpLogSegments, in its order: first
each file, then, over all files, what does not fit together.

Where Kafka's tool ends with a stack trace, a DamageEntry says at which position of the file what is wrong:

- a batch whose CRC is wrong is shown, with `isvalid: false`, and its records as far as they can be read; the length in
  its header still says where the next batch starts;
- bytes that are no batch end the dump of that file, since nothing says where the next batch might start;
- a torn end, which a crash during an append leaves behind, as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path

from hmb.protocol.errors import KafkaError
from hmb.records import DEFAULT_LIMIT, Batch, Codec, Message, RecordBatch, crc32, crc32c, parse_batch
from hmb.storage.dump_entries import (
    BatchEntry,
    DamageEntry,
    DumpOptions,
    Entry,
    FileEntry,
    InnerMessage,
    NoteEntry,
    RecordEntry,
    VerifiedEntry,
)
from hmb.storage.dump_findings import GAP, Findings
from hmb.storage.dump_index import read_index, read_snapshot, read_time_index, read_transaction_index
from hmb.storage.segment_files import HEADER_PEEK, header_at

CHUNK = 1 << 20


def dump(paths: Iterable[Path], options: DumpOptions) -> Iterator[Entry]:
    """The entries of each file; of a directory those of the log files in it. FileNotFoundError if one is missing."""
    findings = Findings()
    for path in paths:
        for file in log_files(path) if path.is_dir() else [path]:
            yield from _verified(file, options, findings) if options.verify else _entries(file, options, findings)
    yield from (entry for entry in findings.entries() if entry.is_damage or not options.verify)


def as_json_fields(entry: Entry) -> dict[str, object]:
    """An entry as one JSON object."""
    return {"type": entry.kind, **entry.fields()}


def log_files(directory: Path) -> list[Path]:
    """The files of a partition's directory that can be dumped, segment by segment."""
    files = [path for path in directory.iterdir() if path.suffix in READERS and path.stem.isdecimal()]
    return sorted(files, key=lambda path: (path.stem, list(READERS).index(path.suffix)))


def _entries(path: Path, options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    yield FileEntry(path)
    nameless = not path.stem.isdecimal()  # an index counts from the offset that is its name
    if path.suffix not in READERS or (nameless and path.suffix in (".index", ".timeindex")):
        yield NoteEntry(f"Ignoring unknown file {path.name}")
        return
    with path.open("rb") as file:
        yield from READERS[path.suffix](file, path, options, findings)


def _verified(path: Path, options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    entries = records = 0
    damages = -findings.damages
    for entry in _entries(path, options, findings):
        if entry.is_damage:
            damages += 1
            yield entry
        elif isinstance(entry, RecordEntry):
            records += 1
        elif not isinstance(entry, FileEntry | NoteEntry):
            entries += 1
    yield VerifiedEntry(path, entries, records, damages + findings.damages)


def _read_log(file: BufferedReader, path: Path, options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    if path.stem.isdecimal():
        yield NoteEntry(f"Log starting offset: {int(path.stem)}")
    last_offset: int | None = None
    position, end = 0, os.fstat(file.fileno()).st_size
    while position < end:
        try:
            batch = header_at(file, position)
            torn = f"{end - position} of the batch's {batch.size} bytes are there"
        except KafkaError as error:
            if end - position >= HEADER_PEEK:
                yield DamageEntry(path, position, error.message)
                return
            batch, torn = None, f"the file ends inside a header: {error.message}"
        if batch is None or batch.size > end - position:
            yield NoteEntry(f"Found {end - position} invalid bytes at the end of {path.name}")
            yield DamageEntry(path, position, torn)
            return
        for entry in _read_batch(file, path, position, batch, options):
            yield entry
            if isinstance(entry, RecordEntry):
                if last_offset is not None and entry.record.offset != last_offset + 1:
                    findings.add(GAP, path, last_offset, entry.record.offset)
                last_offset = entry.record.offset
        position += batch.size


def _read_batch(
    file: BufferedReader, path: Path, position: int, header: Batch, options: DumpOptions
) -> Iterator[Entry]:
    """The batch whose header was read, and in deep iteration its records."""
    computed = _computed_crc(file, position, header)
    is_valid = computed == header.crc
    try:
        yield BatchEntry(position, header, header.codec, is_valid)
        if not is_valid:
            yield DamageEntry(path, position, f"the CRC is {header.crc}, that of the bytes {computed}")
        if options.deep and (is_valid or header.size <= DEFAULT_LIMIT):
            file.seek(position)
            yield from _read_records(parse_batch(file.read(header.size)), options)
    except KafkaError as error:
        yield DamageEntry(path, position, error.message)


def _computed_crc(file: BufferedReader, position: int, batch: Batch) -> int:
    """Chunk by chunk: a damaged length may claim the rest of the file."""
    crc, start = (crc32c, 21) if isinstance(batch, RecordBatch) else (crc32, 16)
    file.seek(position + start)
    left, value = batch.size - start, 0
    while left > 0 and (chunk := file.read(min(left, CHUNK))):
        value = crc(chunk, value)
        left -= len(chunk)
    return value


def _read_records(batch: Batch, options: DumpOptions) -> Iterator[Entry]:
    if isinstance(batch, RecordBatch):
        for record in batch.records():
            yield RecordEntry(record, batch, options.print_data_log)
        return
    inner = [batch] if batch.codec is Codec.NONE else batch.inner_messages()
    for record, message in zip(batch.records(), inner, strict=True):
        yield RecordEntry(record, batch, options.print_data_log, InnerMessage(message.crc, _is_valid(message)))


def _is_valid(message: Message) -> bool:
    return crc32(message.view[16:]) == message.crc


Reader = Callable[[BufferedReader, Path, DumpOptions, Findings], Iterator[Entry]]
READERS: dict[str, Reader] = {
    ".log": _read_log,
    ".index": read_index,
    ".timeindex": read_time_index,
    ".txnindex": read_transaction_index,
    ".snapshot": read_snapshot,
}
