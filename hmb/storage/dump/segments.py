"""Dumps the batches of a `.log` file and optionally their records, like Kafka 4.3's DumpLogSegments.

If a log file is damaged, Kafka's tool ends with a stack trace. HMB's dump instead yields a DamageEntry with the
position of the damage, in these cases:
- The CRC of a batch is wrong, or its records cannot be decoded. The dump continues at the next batch.
- Some bytes are not a batch. The dump of this file ends here, because nothing shows where the next batch begins.
- The last batch is incomplete, for example because the broker has crashed during an append.
- The offset of a batch or record is not greater than the offset before it.

If the CRC of a batch is wrong, the dump shows the batch with `isvalid: false`. With `--deep-iteration`, it also shows
the records before the first record that cannot be decoded. But it shows no records if the size of the batch is greater
than DEFAULT_LIMIT bytes.

A dump of a log file holds only one batch in memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from hmb.protocol.errors import KafkaError
from hmb.records import DEFAULT_LIMIT, Batch, Codec, Message, RecordBatch, crc32, crc32c, parse_batch
from hmb.records.batch import CRC_START, MAGIC_POSITION
from hmb.records.reading import HEADER_PEEK, stored_offset
from hmb.storage.dump.entries import (
    BatchEntry,
    DamageEntry,
    DumpOptions,
    Entry,
    InnerMessage,
    NoteEntry,
    RecordEntry,
)
from hmb.storage.dump.findings import GAP, Findings
from hmb.storage.dump.segment_files import BatchAt, header_at
from hmb.storage.recovery.tails import is_all_zeros

CHUNK = 1 << 20


def read_log(file: BufferedReader, path: Path, options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    """Yield the entries of a log: its batches, their records, and reports of damage."""
    if path.stem.isdecimal():
        yield NoteEntry(f"Log starting offset: {int(path.stem)}")
    offsets = _Offsets(path, findings)
    for found in log_batches(file, path, options):
        if not isinstance(found, BatchAt):
            yield found
            continue
        yield from offsets.of_batch(*found)
        for entry in _read_batch(file, path, found, options):
            yield entry
            if isinstance(entry, RecordEntry):
                yield from offsets.of_record(found.position, entry.record.offset)


def log_batches(file: BufferedReader, path: Path, options: DumpOptions) -> Iterator[BatchAt | Entry]:
    """Yield the header of each whole batch. If other bytes follow the last whole batch, report them as damage."""
    position, end = 0, os.fstat(file.fileno()).st_size
    while position < end:
        options.progress(path, position)
        try:
            batch = header_at(file, position)
            torn = f"{end - position} of the batch's {batch.size} bytes are there"
        except KafkaError as error:
            if end - position >= HEADER_PEEK:
                why = "nothing but zeros follow: the log is in use and preallocated, or they were never written"
                yield DamageEntry(path, position, why if _are_zeros(path, position) else error.message)
                return
            batch, torn = None, f"the file ends inside a header: {error.message}"
        if batch is None or batch.size > end - position:
            yield NoteEntry(f"Found {end - position} invalid bytes at the end of {path.name}")
            yield DamageEntry(path, position, torn)
            return
        yield BatchAt(position, batch)
        position += batch.size


def _are_zeros(path: Path, position: int) -> bool:
    with path.open("rb", buffering=0) as file:
        return is_all_zeros(file, position)


def crc_damage(file: BufferedReader, path: Path, position: int, batch: Batch) -> DamageEntry | None:
    """Return a report if the CRC of a batch is wrong, or else None. `batch` contains only the header of the batch."""
    computed = _computed_crc(file, position, batch)
    if computed == batch.crc:
        return None
    return DamageEntry.of_crc(path, position, batch.crc, computed)


def whole_batch(file: BufferedReader, at: BatchAt, *, is_valid: bool) -> Batch | None:
    """Read a whole batch from the file. Return None if the batch is damaged and larger than DEFAULT_LIMIT.

    `is_valid` is False if the CRC of the batch is wrong. The size in its header can then be wrong too, so the
    function does not read a very large batch.
    """
    if not is_valid and at.batch.size > DEFAULT_LIMIT:
        return None
    file.seek(at.position)
    return parse_batch(file.read(at.batch.size))


class _Offsets:
    """Checks that the offsets of batches and records increase.

    A gap between two offsets is not damage, because compaction removes records.
    """

    def __init__(self, path: Path, findings: Findings) -> None:
        self._path, self._findings = path, findings
        base_offset = int(path.stem) if path.stem.isdecimal() else 0
        self._last_of_batch = base_offset - 1
        self._last_of_record: int | None = None

    def of_batch(self, position: int, batch: Batch) -> Iterator[Entry]:
        first = stored_offset(batch)
        if first <= self._last_of_batch:
            yield DamageEntry(self._path, position, f"offset {first} does not follow {self._last_of_batch}")
        self._last_of_batch = batch.last_offset

    def of_record(self, position: int, offset: int) -> Iterator[Entry]:
        last, self._last_of_record = self._last_of_record, offset
        if last is not None and offset != last + 1:
            self._findings.add(GAP, self._path, last, offset)
            if offset <= last <= self._last_of_batch:
                yield DamageEntry(self._path, position, f"offset {offset} does not follow {last} in the batch")


def _read_batch(file: BufferedReader, path: Path, at: BatchAt, options: DumpOptions) -> Iterator[Entry]:
    """Yield the entry of one batch. With `--deep-iteration`, also yield the entries of its records."""
    damage = crc_damage(file, path, *at)
    try:
        yield BatchEntry(at.position, at.batch, at.batch.codec, damage is None)
        if damage is not None:
            yield damage
        if options.deep and (batch := whole_batch(file, at, is_valid=damage is None)) is not None:
            yield from _read_records(batch, options)
    except KafkaError as error:
        yield DamageEntry(path, at.position, error.message)


def _computed_crc(file: BufferedReader, position: int, batch: Batch) -> int:
    """Compute the CRC of a batch from its bytes in the file, and return it.

    The function reads the bytes in chunks, because a damaged batch can claim to be very long.
    """
    crc, start = (crc32c, CRC_START) if isinstance(batch, RecordBatch) else (crc32, MAGIC_POSITION)
    file.seek(position + start)
    left, value = batch.size - start, 0
    while left > 0 and (chunk := file.read(min(left, CHUNK))):
        value = crc(chunk, value)
        left -= len(chunk)
    return value


def _read_records(batch: Batch, options: DumpOptions) -> Iterator[Entry]:
    decode = None if batch.is_control else options.decode
    if isinstance(batch, RecordBatch):
        for record in batch.records():
            yield RecordEntry(record, batch, options.print_data_log, decoded=decode and decode(record))
        return
    inner = [batch] if batch.codec is Codec.NONE else batch.inner_messages()
    for record, message in zip(batch.records(), inner, strict=True):
        inner_message = InnerMessage(message.crc, _is_valid(message))
        yield RecordEntry(record, batch, options.print_data_log, inner_message, decode and decode(record))


def _is_valid(message: Message) -> bool:
    return crc32(message.view[MAGIC_POSITION:]) == message.crc
