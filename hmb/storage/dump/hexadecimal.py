"""The hexadecimal view of a file: each field with its bytes, its name and its value.

This example shows three lines of the view of a log file. The last line is indented, because it shows a byte of the
decompressed records. The positions of decompressed bytes begin at 0 again:
    000000  00 00 00 00 00 00 00 00                          batches[0].base_offset = 0
    000008  00 00 00 4a                                      batches[0].batch_length = 74
    ...
      000000  14                                               batches[0].records[0].length = 10

Every byte of the file belongs to exactly one field. Bytes that cannot be decoded are shown as `unreadable`. The zeros
at the end of a preallocated file are one line. After a compressed field, indented lines show the decompressed bytes.
`records.annotate` contains the formats of batches and messages.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from dataclasses import fields as fields_of
from io import BufferedReader
from pathlib import Path
from struct import Struct
from typing import ClassVar

from hmb.protocol.annotate import Line, meaning, rows
from hmb.protocol.errors import KafkaError
from hmb.records import crc32c
from hmb.records.annotate import AnnotatedNumber, annotate_batch, annotate_header, fixed_fields, timestamp_note
from hmb.records.batch import MAGIC
from hmb.storage.dump.entries import DamageEntry, DumpOptions, Entry, text_or_base64
from hmb.storage.dump.findings import Findings
from hmb.storage.dump.indexes import AbortedTransactionEntry, ProducerEntry
from hmb.storage.dump.segment_files import BatchAt
from hmb.storage.dump.segments import crc_damage, log_batches, whole_batch
from hmb.storage.dump.state_files import state_lines
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.producer_state import SNAPSHOT_CRC_START, SNAPSHOT_ENTRY, SNAPSHOT_HEADER
from hmb.storage.time_index import TimeIndex
from hmb.storage.transaction_index import TransactionIndex

CHUNK = 1 << 16
LONGEST_VALUE_TEXT = 80  # A line shows at most this many characters of a value as text, but all bytes of the value.


@dataclass(frozen=True, slots=True)
class FieldEntry(Entry):
    """A field of a file: its bytes, its name and its value."""

    kind: ClassVar[str] = "field"
    position: int
    size: int
    # The bytes of the field. If a file contains zeros that belong to no field, one `FieldEntry` describes these zeros.
    # Its `data` is empty, and its `value` is their number.
    data: memoryview
    field: str
    value: object
    is_inside: bool = False  # whether the field is in decompressed bytes; `position` is then a position in these bytes
    data_type: str = ""  # name of the field's type; if this name is empty, `line` shows no type

    def line(self) -> str:
        text = meaning(self.field, self.value)
        if len(text) > LONGEST_VALUE_TEXT:
            text = f"{text[:LONGEST_VALUE_TEXT]}..."
        indent = "  " if self.is_inside else ""
        name = f"{self.field}: {self.data_type}" if self.data_type else self.field
        return "\n".join(indent + row for row in rows(self.position, self.data, f"{name} = {text}"))

    def fields(self) -> dict[str, object]:
        fields: dict[str, object] = {"position": self.position, "size": self.size, "field": self.field}
        if isinstance(self.value, AnnotatedNumber):
            fields |= {"value": self.value.number, "meaning": self.value.meaning}
        elif isinstance(self.value, bytes):
            fields |= text_or_base64("value", self.value)
        elif not isinstance(self.value, memoryview):
            fields["value"] = self.value
        fields |= {"data_type": self.data_type} if self.data_type else {}
        return fields | {"bytes": self.data.hex(), "is_inside": self.is_inside}


def log_fields(file: BufferedReader, path: Path, options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield the fields of a log file, batch by batch."""
    end = 0
    for number, found in enumerate(log_batches(file, path, options)):
        if not isinstance(found, BatchAt):
            yield found
            continue
        kind = "batches" if found.batch.magic == MAGIC else "messages"
        yield from batch_fields(file, path, found, f"{kind}[{number}].")
        end = found.position + found.batch.size
    yield from _rest(file, end)


def batch_fields(file: BufferedReader, path: Path, at: BatchAt, prefix: str = "") -> Iterator[Entry]:
    """Yield the fields of one batch. The name of each field begins with `prefix`."""
    damage = crc_damage(file, path, *at)
    if damage is not None:
        yield damage
    end = at.position
    try:
        batch = whole_batch(file, at, is_valid=damage is None)
        lines: Iterable[tuple[Line, bool]] = (
            ((line, False) for line in annotate_header(at.batch, at.position))
            if batch is None
            else annotate_batch(batch, at.position)
        )
        for line, is_inside in lines:
            yield _field(line, prefix, is_inside=is_inside)
            end = end if is_inside else line.offset + len(line.data)
    except KafkaError as error:
        yield DamageEntry(path, at.position, error.message)
    yield from _rest(file, end, at.position + at.batch.size, prefix)


def index_fields(file: BufferedReader, path: Path, _options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield the fields of an offset index or a time index, and then one entry for the zeros at the end of the file."""
    is_time_index = path.suffix == TimeIndex.SUFFIX
    form = TimeIndex.ENTRY if is_time_index else OffsetIndex.ENTRY
    names = ("timestamp", "relative_offset") if is_time_index else ("relative_offset", "position")
    position = number = 0
    while len(data := file.read(form.size)) == form.size and any(data):
        for line in fixed_fields(form, names, memoryview(data), 0):
            value: object = line.value
            if line.path == "relative_offset":
                value = AnnotatedNumber(line.value, f"-> {int(path.stem) + line.value}")
            elif line.path == "timestamp":
                value = timestamp_note(line.value)
            line = line._replace(offset=position + line.offset, value=value)
            yield _field(line, f"entries[{number}].")
        position, number = position + form.size, number + 1
    yield from _rest(file, position)


def transaction_fields(
    file: BufferedReader, _path: Path, _options: DumpOptions, _findings: Findings
) -> Iterator[Entry]:
    """Yield the fields of each entry of a transaction index."""
    end = yield from _repeated(file, 0, TransactionIndex.ENTRY, AbortedTransactionEntry, "transactions")
    yield from _rest(file, end)


def snapshot_fields(file: BufferedReader, path: Path, _options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield the fields of a snapshot of the idempotent producers."""
    header = file.read(SNAPSHOT_HEADER.size)
    position = 0
    if len(header) == SNAPSHOT_HEADER.size:
        crc = crc32c(header[SNAPSHOT_CRC_START:] + file.read())
        for line in fixed_fields(SNAPSHOT_HEADER, ("version", "crc", "count"), memoryview(header), 0):
            yield _field(line, "")
            if line.path == "crc" and line.value != crc:
                yield DamageEntry.of_crc(path, line.offset, line.value, crc)
        position = yield from _repeated(file, SNAPSHOT_HEADER.size, SNAPSHOT_ENTRY, ProducerEntry, "producers")
    yield from _rest(file, position)


def state_fields(file: BufferedReader, path: Path, _options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield one entry for each line of a state file, with the bytes of the line."""
    end = 0
    for number, (position, data, entry) in enumerate(state_lines(file, path)):
        if entry.is_damage:
            yield entry
        if data:
            yield _field(Line(position, memoryview(data), f"lines[{number}]", data), "")
            end = position + len(data)
    yield from _rest(file, end)


def _repeated(
    file: BufferedReader, position: int, form: Struct, entry: type[Entry], path: str
) -> Generator[Entry, None, int]:
    """Yield the fields of all entries from `position` to the end of the file. All entries have the same length.

    When the generator ends, it returns the position after the last entry.
    """
    names = tuple(field.name for field in fields_of(entry))
    file.seek(position)
    number = 0
    while len(data := file.read(form.size)) == form.size:
        for line in fixed_fields(form, names, memoryview(data), 0):
            yield _field(line._replace(offset=position + line.offset), f"{path}[{number}].")
        position, number = position + form.size, number + 1
    return position


def _rest(file: BufferedReader, position: int, end: int | None = None, prefix: str = "") -> Iterator[Entry]:
    """Yield entries for the bytes from `position` to `end`, which belong to no field.

    Consecutive zeros become one entry. All other bytes are split into chunks. Without `end`, the function continues
    to the end of the file.
    """
    end = os.fstat(file.fileno()).st_size if end is None else end
    zeros = 0
    file.seek(position)
    while data := file.read(min(CHUNK, end - position)):
        if any(data):
            yield from _zeros(position - zeros, zeros, prefix)
            yield _field(Line(position, memoryview(data), "unreadable", memoryview(data)), prefix)
            zeros = 0
        else:
            zeros += len(data)
        position += len(data)
    yield from _zeros(position - zeros, zeros, prefix)


def _zeros(position: int, size: int, prefix: str) -> Iterator[Entry]:
    if size:
        yield FieldEntry(position, size, memoryview(b""), f"{prefix}zeros", size)


def _field(line: Line, prefix: str, *, is_inside: bool = False) -> Entry:
    return FieldEntry(line.offset, len(line.data), line.data, prefix + line.path, line.value, is_inside)
