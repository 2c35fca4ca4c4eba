"""The tree view of a segment: the file, its batches and their records, each with its size and its offsets.

For example, a segment has two batches. Record 0 has a size of 17 bytes, its key has 2 bytes, and its value has 7 bytes.
The tree shows this segment as:
    00000000000000000000.log: 222 bytes, offsets 0..5, 2 batches, 6 records
      batch at 0: 111 bytes, offsets 0..2, 3 records
        record 0: 17 bytes, key 2, value 7
    ...
      batch at 111: 111 bytes, offsets 3..5, 3 records in 50 bytes of gzip, 90 decompressed

The tree shows a message of the old formats v0 and v1 in the same way as a batch. A *wrapper*, a compressed message,
contains several records. A message that is not compressed contains one record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import ClassVar

from hmb.protocol.errors import KafkaError
from hmb.records import RECORD_BATCH_OVERHEAD, Batch, Codec, Message, Record, RecordBatch, decompress
from hmb.records.batch import MAGIC
from hmb.records.compression import CODEC_MASK
from hmb.records.reading import stored_offset
from hmb.records.varint import read_varint
from hmb.storage.dump.entries import DamageEntry, DumpOptions, Entry, counted, optional_size
from hmb.storage.dump.findings import Findings
from hmb.storage.dump.segment_files import BatchAt
from hmb.storage.dump.segments import crc_damage, log_batches, whole_batch


@dataclass(frozen=True, slots=True)
class SegmentNode(Entry):
    """A log file, with the number of its batches and records."""

    kind: ClassVar[str] = "segment"
    file: Path
    size: int
    first_offset: int | None  # None if the file has no batch
    last_offset: int | None
    batches: int
    records: int | None  # None: unknown, because the file has compressed messages

    def line(self) -> str:
        offsets = "no offsets" if self.last_offset is None else _offsets(self.first_offset, self.last_offset)
        records = "" if self.records is None else f", {counted(self.records, 'record')}"
        return f"{self.file}: {self.size} bytes, {offsets}, {counted(self.batches, 'batch', 'batches')}{records}"


@dataclass(frozen=True, slots=True)
class BatchNode(Entry):
    """A record batch, a wrapper (a compressed message), or a message that is not compressed."""

    kind: ClassVar[str] = "batch"
    position: int
    size: int
    magic: int
    first_offset: int
    last_offset: int
    records: int
    codec: str
    compressed_size: int
    uncompressed_size: int

    def line(self) -> str:
        name = "batch" if self.magic == MAGIC else "message" if self.codec == "none" else "wrapper"
        text = f"  {name} at {self.position}: {self.size} bytes, {_offsets(self.first_offset, self.last_offset)}"
        text += f", {counted(self.records, 'record')}"
        if self.codec != "none":
            text += f" in {self.compressed_size} bytes of {self.codec}, {self.uncompressed_size} decompressed"
        return text


@dataclass(frozen=True, slots=True)
class RecordNode(Entry):
    """A record. Its size is the number of its bytes without compression."""

    kind: ClassVar[str] = "record"
    offset: int
    size: int
    key_size: int
    value_size: int
    headers: int

    def line(self) -> str:
        key = "no key" if self.key_size < 0 else f"key {self.key_size}"
        value = "no value" if self.value_size < 0 else f"value {self.value_size}"
        headers = f", {counted(self.headers, 'header')}" if self.headers else ""
        return f"    record {self.offset}: {self.size} bytes, {key}, {value}{headers}"


@dataclass(frozen=True, slots=True)
class FileNode(Entry):
    """A file that is not a log file, with its size in bytes."""

    kind: ClassVar[str] = "file"
    file: Path
    size: int

    def line(self) -> str:
        return f"{self.file}: {self.size} bytes"


def file_node(file: BufferedReader, path: Path, _options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield one entry: the name and the size of a file that is not a log file."""
    yield FileNode(path, os.fstat(file.fileno()).st_size)


def log_tree(file: BufferedReader, path: Path, options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield the entries of one log file: the file itself, then each batch and its records."""
    yield _segment(file, path, options)
    for found in log_batches(file, path, options):
        if not isinstance(found, BatchAt):
            yield found
            continue
        damage = crc_damage(file, path, *found)
        if damage is not None:
            yield damage
        try:
            if (batch := whole_batch(file, found, is_valid=damage is None)) is not None:
                yield from _batch(batch, found.position)
        except KafkaError as error:
            yield DamageEntry(path, found.position, error.message)


def _segment(file: BufferedReader, path: Path, options: DumpOptions) -> SegmentNode:
    """Return the entry for a log file in the tree view. Read only the headers of the batches."""
    first_offset = last_offset = None
    batches = records = wrappers = 0
    for found in log_batches(file, path, options):
        if isinstance(found, BatchAt):
            batch = found.batch
            is_old = isinstance(batch, Message)
            wrappers += is_old and bool(batch.attributes & CODEC_MASK)
            records += 1 if batch.records_count is None else batch.records_count
            batches, last_offset = batches + 1, batch.last_offset
            if first_offset is None:
                first_offset = stored_offset(batch)
    size = os.fstat(file.fileno()).st_size
    return SegmentNode(path, size, first_offset, last_offset, batches, None if wrappers else records)


def _batch(batch: Batch, position: int) -> Iterator[Entry]:
    if isinstance(batch, RecordBatch):
        content = batch.view[RECORD_BATCH_OVERHEAD:]
        compressed_size, data = len(content), decompress(batch.codec, content)
        sizes, records = _record_sizes(data), batch.records()
        first_offset, count, size = batch.base_offset, batch.records_count, len(data)
    else:
        inner = [batch] if batch.codec is Codec.NONE else list(batch.inner_messages())
        found = list(batch.records())
        compressed_size = len(batch.key_and_value()[1] or b"")
        sizes, records = (message.size for message in inner), iter(found)
        first_offset, count, size = found[0].offset, len(found), sum(message.size for message in inner)
    codec = batch.codec.name.lower()
    offsets = first_offset, batch.last_offset
    yield BatchNode(position, batch.size, batch.magic, *offsets, count, codec, compressed_size, size)
    for record, record_size in zip(records, sizes, strict=True):
        yield _record(record, record_size)


def _record_sizes(data: bytes) -> Iterator[int]:
    """Yield the size of each record in bytes, with its length field.

    The length field is a varint at the beginning of a record. It contains the number of bytes after the length
    field. For example, a length field of 1 byte contains the number 20. The size of the record is then 21 bytes.
    """
    position = 0
    while position < len(data):
        length, start = read_varint(data, position)
        yield start + length - position
        position = start + length


def _record(record: Record, size: int) -> RecordNode:
    key, value = record.key, record.value
    return RecordNode(record.offset, size, optional_size(key), optional_size(value), len(record.headers))


def _offsets(first: int | None, last: int | None) -> str:
    return f"offset {last}" if first == last else f"offsets {first}..{last}"
