"""Dumps a segment's small files: offset index, time index, transaction index, producer snapshot.

The offset index and the time index repeat facts that are also in the log. The dump therefore compares each
entry of these two indexes with the log. The entries must follow these rules:

- An entry of the offset index contains an offset and a position in the log file. The batch at this position
  must end at this offset.
- An entry of the time index contains a timestamp and an offset. This timestamp must be the greatest timestamp
  of the batch that ends at this offset.

`Findings` collects the differences between the indexes and the log. After the contents of all files, the dump
prints these differences, as Kafka's tool does.

Kafka creates the file of an index with its full size. While Kafka appends to the index, all bytes after the
last entry are zeros. The dump stops at these zeros.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from struct import Struct
from typing import ClassVar

from hmb.protocol.errors import KafkaError
from hmb.records import NO_TIMESTAMP, Batch, crc32c, parse_batch
from hmb.records.producer_numbers import increment_sequence
from hmb.storage.dump.entries import DamageEntry, DumpOptions, Entry, NoteEntry, counted, optional_long
from hmb.storage.dump.findings import FEW, INDEX_MISMATCH, NOT_FOUND, OUT_OF_ORDER, TIMESTAMP_MISMATCH, Findings
from hmb.storage.dump.segment_files import IndexReader, header_at, walk
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.producer_state import SNAPSHOT_CRC_START, SNAPSHOT_ENTRY, SNAPSHOT_HEADER, SNAPSHOT_VERSION
from hmb.storage.time_index import TimeIndex
from hmb.storage.transaction_index import TransactionIndex, is_possible


@dataclass(frozen=True, slots=True)
class IndexEntry(Entry):
    """An entry of the offset index."""

    kind: ClassVar[str] = "index_entry"
    offset: int
    position: int

    def line(self) -> str:
        return f"offset: {self.offset} position: {self.position}"


@dataclass(frozen=True, slots=True)
class TimeIndexEntry(Entry):
    """An entry of the time index."""

    kind: ClassVar[str] = "time_index_entry"
    timestamp: int
    offset: int

    def line(self) -> str:
        return f"timestamp: {self.timestamp} offset: {self.offset}"


@dataclass(frozen=True, slots=True)
class AbortedTransactionEntry(Entry):
    """An entry of the transaction index. It describes one aborted transaction.

    Consumers that want only committed records skip the records of this transaction.
    """

    kind: ClassVar[str] = "aborted_transaction"
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def line(self) -> str:
        return (
            f"version: {self.version} producerId: {self.producer_id} firstOffset: {self.first_offset}"
            f" lastOffset: {self.last_offset} lastStableOffset: {self.last_stable_offset}"
        )


@dataclass(frozen=True, slots=True)
class ProducerEntry(Entry):
    """An idempotent producer in a snapshot."""

    kind: ClassVar[str] = "producer"
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int  # -1 if no transaction is open

    def line(self) -> str:
        first = self.current_txn_first_offset
        head = (
            f"producerId: {self.producer_id} producerEpoch: {self.producer_epoch}"
            f" coordinatorEpoch: {self.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(None if first < 0 else first)} lastTimestamp: {self.timestamp}"
        )
        if self.last_offset < 0:
            return head  # The snapshot has no batch of this producer.
        first_sequence = increment_sequence(self.last_sequence, -self.offset_delta)
        return head + (
            f" firstSequence: {first_sequence} lastSequence: {self.last_sequence}"
            f" lastOffset: {self.last_offset} offsetDelta: {self.offset_delta} timestamp: {self.timestamp}"
        )


def read_index(file: BufferedReader, path: Path, options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    """Yield the entries of an offset index. Compare each entry with the log."""
    if _size(file) < OffsetIndex.ENTRY.size:
        yield NoteEntry(f"{path} is empty.")
    elif options.index_sanity_check:
        yield _sanity(file, path, OffsetIndex.ENTRY)
        return
    else:
        yield from _few_damages(_offsets_against_log(file, path, findings), path)
    yield from _behind_the_entries(path)


def _offsets_against_log(file: BufferedReader, path: Path, findings: Findings) -> Iterator[Entry]:
    base_offset = int(path.stem)
    with _log_beside(path) as log:
        for at, (relative_offset, position) in index_entries(file, OffsetIndex.ENTRY):
            entry = IndexEntry(base_offset + relative_offset, position)
            yield entry
            if relative_offset == position == 0:
                return  # An empty index of a log in use contains only padding.
            try:
                last_offset = header_at(log, position).last_offset
            except KafkaError as error:
                yield DamageEntry(path, at, f"no batch begins at position {position} of the log: {error.message}")
                continue
            if last_offset != entry.offset:
                findings.add(INDEX_MISMATCH, path, entry.offset, last_offset)


def read_time_index(file: BufferedReader, path: Path, options: DumpOptions, findings: Findings) -> Iterator[Entry]:
    """Yield the entries of a time index. Compare each entry with its batch in the log."""
    if options.index_sanity_check:
        yield _sanity(file, path, TimeIndex.ENTRY)
    else:
        yield from _few_damages(_timestamps_against_log(file, path, findings), path)
        yield from _behind_the_entries(path)


def _timestamps_against_log(file: BufferedReader, path: Path, findings: Findings) -> Iterator[Entry]:
    base_offset, previous = int(path.stem), NO_TIMESTAMP
    with _log_beside(path) as log, _offset_index_beside(path) as index:
        for at, (timestamp, relative_offset) in index_entries(file, TimeIndex.ENTRY):
            entry = TimeIndexEntry(timestamp, base_offset + relative_offset)
            yield entry
            if timestamp == relative_offset == 0:
                return  # An empty index of a log in use contains only padding.
            try:
                start = index.lookup(entry.offset) if index is not None else None
                batch = _batch_ending_at_or_after(log, start[1] if start else 0, entry.offset)
                if batch is None or batch.last_offset != entry.offset:
                    findings.add(NOT_FOUND, path, entry.offset, -1 if batch is None else batch.last_offset)
                else:
                    # Compaction may have removed all records of a batch. The header of the batch still contains their
                    # greatest timestamp, so use the header. Kafka's tool does not, and reports a mismatch.
                    newest = max([record.timestamp for record in batch.records()], default=batch.max_timestamp)
                    if newest != timestamp:
                        findings.add(TIMESTAMP_MISMATCH, path, timestamp, newest)
                    if previous >= timestamp:
                        findings.add(OUT_OF_ORDER, path, timestamp, previous)
            except KafkaError as error:
                yield DamageEntry(path, at, f"offset {entry.offset} cannot be found in the log: {error.message}")
            previous = timestamp


def read_transaction_index(
    file: BufferedReader, path: Path, _options: DumpOptions, _findings: Findings
) -> Iterator[Entry]:
    """Yield the entries of a transaction index: the aborted transactions of a segment."""
    position, width, end = 0, TransactionIndex.ENTRY.size, int(path.stem)
    while len(data := file.read(width)) == width:
        fields = TransactionIndex.ENTRY.unpack(data)
        yield (entry := AbortedTransactionEntry(*fields))
        if not is_possible(fields, end):
            why = f"no entry: its numbers, or its place behind a marker at offset {end - 1}, are impossible"
            yield DamageEntry(path, position, why)
        position, end = position + width, entry.last_offset + 1
    if data:
        yield DamageEntry(path, position, f"the last entry has only {len(data)} of {width} bytes")


def read_snapshot(file: BufferedReader, path: Path, _options: DumpOptions, _findings: Findings) -> Iterator[Entry]:
    """Yield the idempotent producers in a snapshot. producer_state.py explains the layout of the file."""
    data = file.read()
    if len(data) < SNAPSHOT_HEADER.size:
        yield DamageEntry(path, 0, f"a snapshot has at least {SNAPSHOT_HEADER.size} bytes, not {len(data)}")
        return
    version, crc, count = SNAPSHOT_HEADER.unpack_from(data)
    end = SNAPSHOT_HEADER.size + count * SNAPSHOT_ENTRY.size
    if version != SNAPSHOT_VERSION:
        yield DamageEntry(path, 0, f"the snapshot has the unknown version {version}")
    elif crc != (computed := crc32c(data[SNAPSHOT_CRC_START:])):
        yield DamageEntry.of_crc(path, 2, crc, computed)
    elif end != len(data):
        yield DamageEntry(path, 6, f"{count} producers take {end} bytes, but the file has {len(data)}")
    else:
        for fields in SNAPSHOT_ENTRY.iter_unpack(data[SNAPSHOT_HEADER.size :]):
            yield ProducerEntry(*fields)


def index_entries(file: BufferedReader, entry: Struct) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield `(position, fields)` for each entry of an index file. Stop at the zeros after the last entry.

    `position` is the position of the entry in the file, and `fields` contains the two numbers of the entry.
    """
    relative_offset = 0 if entry is OffsetIndex.ENTRY else 1  # the index of the field `relative_offset` in an entry
    position = 0
    while len(data := file.read(entry.size)) == entry.size:
        fields = entry.unpack(data)
        if position and fields[relative_offset] == 0:
            return
        yield position, fields
        position += entry.size


def _sanity(file: BufferedReader, path: Path, entry: Struct) -> Entry:
    """Check an index's size and last entry, as a Kafka broker does when it starts. Return the result."""
    size = _size(file)
    if size % entry.size:
        return DamageEntry(path, size - size % entry.size, f"{size} bytes are not a multiple of {entry.size}")
    if size:
        first = entry.unpack(file.read(entry.size))
        file.seek(size - entry.size)
        last = entry.unpack(file.read(entry.size))
        is_ordered = last[0] >= 0 if entry is OffsetIndex.ENTRY else last[0] >= first[0] and last[1] >= 0
        if not is_ordered:
            why = "the last entry has an offset below the base offset, or a timestamp below the first timestamp"
            return DamageEntry(path, size - entry.size, why)
    return NoteEntry(f"{path} passed sanity check.")


def _few_damages(entries: Iterator[Entry], path: Path) -> Iterator[Entry]:
    """Yield all entries, but only the first FEW reports of damage. At the end, report how many were left out.

    One problem can cause thousands of reports. For example, if the end of the log file is missing, the dump reports
    every index entry that points to the missing part.
    """
    damages, first_hidden = 0, 0
    for entry in entries:
        if isinstance(entry, DamageEntry):
            damages += 1
            if damages == FEW + 1:
                first_hidden = entry.position
            if damages > FEW:
                continue
        yield entry
    if damages > FEW:
        more = counted(damages - FEW, "more entry", "more entries")
        why = f"the batches of {more} cannot be found in the log; the first of these entries is at this position"
        yield DamageEntry(path, first_hidden, why)


def _log_beside(path: Path) -> BufferedReader:
    """Open the log file of the segment to which the index `path` belongs.

    If the index has no entries and the log file does not exist, return an empty file. An index without entries can
    be checked without the log.
    """
    log = path.with_suffix(".log")
    with IndexReader(path) as index:
        is_needed = len(index) > 0
    return log.open("rb") if is_needed or log.exists() else BufferedReader(BytesIO())


def _behind_the_entries(path: Path) -> Iterator[Entry]:
    with IndexReader(path) as index:
        position, _, problem = index.tail()
    if problem:
        yield DamageEntry(path, position, problem)


def _offset_index_beside(path: Path) -> IndexReader | nullcontext[None]:
    index_path = path.with_suffix(OffsetIndex.SUFFIX)
    return IndexReader(index_path) if index_path.exists() else nullcontext()


def _batch_ending_at_or_after(log: BufferedReader, position: int, offset: int) -> Batch | None:
    for at, batch in walk(log, position):
        if batch.last_offset >= offset:
            log.seek(at)
            return parse_batch(log.read(batch.size))
    return None


def _size(file: BufferedReader) -> int:
    return os.fstat(file.fileno()).st_size
