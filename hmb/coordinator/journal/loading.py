"""Reads one partition of a journal when the broker starts.

Only the newest record of each key is valid, so the broker decodes and replays only the newest records. This saves time,
because a log with a million commits may have only a few thousand keys. If the newest record of a key is a tombstone,
the broker ignores the key.

A transaction can contain committed offsets, which are valid only if the transaction commits. In the log, a control
record (the marker) follows the records of a transaction and contains its result, COMMIT or ABORT. The reader of the
journal collects the records of each producer id until it reads the marker of the transaction. If the result is ABORT,
the reader discards the collected records. If the result is COMMIT, the collected records become valid.

A record in a transaction and one outside can have the same key. After a COMMIT, the record with the greater
log offset is valid. After an ABORT, the record outside is valid.

In the following example, the log of a journal contains three records:
1. A record of a transaction contains the committed offset 10 of weather-0.
2. A record outside the transaction contains the committed offset 20 of weather-0.
3. The COMMIT marker ends the transaction.

Record 2 comes later in the log than record 1, so the committed offset of weather-0 is 20, not 10.

Some transactions can still be open at the end of the journal's log. The broker replays the records of these
transactions last, and passes the producer id of each record to the coordinator. The coordinator keeps the
offsets in these records as pending until the transaction ends.

Source: Kafka's `CoordinatorLoaderImpl`, `OffsetMetadataManager`; KIP-98.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from hmb.coordinator.journal.records import KEYS, Key, Keys, UnknownRecordType, decode_key, decode_value
from hmb.protocol.errors import KafkaError, ProtocolError, invalid_record
from hmb.records import Batch, ControlType, Record, RecordBatch, control_type, iter_batches
from hmb.storage.cleanup import replacement
from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
READ_BYTES = 1 << 20  # the size of one read; Kafka's setting offsets.load.buffer.size is 5 MiB by default

# One record of the journal: its key, its value (an object of the class `key.value`), and a producer id. The producer id
# is set only if the record belongs to a transaction that is still open.
Loaded: TypeAlias = tuple[Key, Any, int | None]
Replay: TypeAlias = Callable[[Key, Any, int | None], None]
ReadRecords: TypeAlias = Callable[[Log, threading.Event, Keys], Iterator[Loaded]]


class _Stored(NamedTuple):
    offset: int
    value: bytes | None


class NewestRecords:
    """The newest record of each key. The records of a transaction are stored separately until the transaction ends."""

    def __init__(self) -> None:
        self._stored: dict[bytes, _Stored] = {}
        self._open: dict[int, dict[bytes, _Stored]] = {}  # the newest records of open transactions, by producer id

    def add(self, batch: Batch) -> None:
        """Add the records of the next batch in the log. Raises KafkaError if the batch is damaged."""
        batch.check()
        target = self._stored
        if isinstance(batch, RecordBatch) and batch.is_control:
            for record in batch.records():
                self._end_transaction(batch.producer_id, control_type(record))
            return
        if isinstance(batch, RecordBatch) and batch.is_transactional:
            target = self._open.setdefault(batch.producer_id, {})
        for record in batch.records():
            target[_key(record)] = _Stored(record.offset, record.value)

    def _end_transaction(self, producer_id: int, outcome: ControlType) -> None:
        ended = self._open.pop(producer_id, {})
        if outcome is not ControlType.COMMIT:
            return
        for key, stored in ended.items():
            if key not in self._stored or self._stored[key].offset < stored.offset:
                self._stored[key] = stored

    def decoded(self, keys: Keys) -> Iterator[Loaded]:
        """Yield each key's newest record in log order, then records of open transactions. Raises ProtocolError."""
        yield from _decoded(self._stored, keys, None)
        for producer_id, stored in self._open.items():
            yield from _decoded(stored, keys, producer_id)


def newest_records(log: Log, stop: threading.Event, keys: Keys = KEYS) -> Iterator[Loaded]:
    """Read the log of a partition, and yield the newest record of each key.

    The function reads to the end of the log, or until `stop` is set. It skips tombstones, aborted transactions, and
    records of an unknown type. The newest records of open transactions come after all other records.

    If a batch is damaged, the function repairs its segment, and continues at the same offset. Raises KafkaError,
    ProtocolError, OSError.
    """
    newest = NewestRecords()
    _read_batches(log, stop, newest.add)
    yield from newest.decoded(keys)


def all_records(log: Log, stop: threading.Event, keys: Keys) -> Iterator[Loaded]:
    """Read the log of a partition, and yield all its records in log order. A tombstone has the value None.

    Some coordinators need all records of a key, because some records describe only what has changed. The function
    skips records of an unknown type. It reads to the end of the log, or until `stop` is set. Raises the errors of
    `newest_records`.
    """
    records: list[Record] = []

    def add(batch: Batch) -> None:
        batch.check()
        records.extend(batch.records())

    _read_batches(log, stop, add)
    for record in records:
        if (key := _decoded_key(_key(record), record.offset, keys)) is not None:
            yield key, None if record.value is None else decode_value(key, record.value), None


def _read_batches(log: Log, stop: threading.Event, take: Callable[[Batch], None]) -> None:
    """Pass each batch of a log to the function `take`.

    `_read_batches` returns at the end of the log, or when another thread has set the event `stop`.

    If a batch is damaged, `take` raises KafkaError. `_read_batches` then repairs the segment that contains this
    batch, and continues at the same offset. If `take` raises KafkaError again at this offset, `_read_batches`
    raises this error.
    """
    offset, repaired_at = log.log_start_offset, -1
    while not stop.is_set() and (region := log.read(offset, READ_BYTES).records) is not None:
        try:
            for batch in iter_batches(region.read()):
                take(batch)
                offset = batch.last_offset + 1
        except KafkaError as error:
            if offset == repaired_at:
                raise
            replacement.check(log, offset, error.message)
            repaired_at = offset


def _decoded(records: Mapping[bytes, _Stored], keys: Keys, producer_id: int | None) -> Iterator[Loaded]:
    for raw, stored in sorted(records.items(), key=lambda item: item[1].offset):
        if stored.value is not None and (key := _decoded_key(raw, stored.offset, keys)) is not None:
            yield key, decode_value(key, stored.value), producer_id


def _decoded_key(raw: bytes, offset: int, keys: Keys) -> Key | None:
    """Decode the key of the record at `offset`, or return None for an unknown type. Raises ProtocolError."""
    try:
        return decode_key(raw, keys)
    except UnknownRecordType as error:
        LOGGER.warning("offset %d: %s; the record is skipped", offset, error)
        return None
    except ProtocolError as error:
        raise ProtocolError(f"offset {offset}: {error}") from error


def _key(record: Record) -> bytes:
    if record.key is None:
        raise invalid_record(f"the record at offset {record.offset} has no key")
    return record.key
