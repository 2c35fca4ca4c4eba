"""Reading a partition of `__consumer_offsets`, at a broker's start.

The newest record with a key is the state, so only that is decoded and replayed: a log of a million commits is a few
thousand keys.  A tombstone is a key that is not there.

Offsets that were committed within a transaction count from its commit on, and not at all if it was aborted.  They are
in the log before that is known, under the producer's id, and the control record that ends the transaction says which it
was.  When it was committed, the greater offset in the log wins, as if each record had been read at its own place:
a commit outside of the transaction that came later stays.

Left out: transactions that are still open at the end of the log.  Nothing can end them, as this broker has none yet.

Source: Kafka's `CoordinatorLoaderImpl`, `OffsetMetadataManager`; KIP-98.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hmb.coordinator.group_records import Key, UnknownRecordType, decode_key, decode_value
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.records import Batch, ControlType, Record, RecordBatch, control_type, iter_batches
from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
READ_BYTES = 1 << 20  # at a time; Kafka's offsets.load.buffer.size is five times as much

Replay = Callable[[Key, Any], None]  # a key with its value, an object of `key.value`


class _Stored(NamedTuple):
    """A record's place in the log, and its value."""

    offset: int
    value: bytes | None


class NewestRecords:
    """The newest record of each key."""

    def __init__(self) -> None:
        self._stored: dict[bytes, _Stored] = {}
        self._open: dict[int, dict[bytes, _Stored]] = {}  # transactions, by producer id

    def add(self, batch: Batch) -> None:
        """The next batch of the log.  Raises KafkaError where it is damaged."""
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

    def _end_transaction(self, producer_id: int, how: ControlType) -> None:
        ended = self._open.pop(producer_id, {})
        if how is not ControlType.COMMIT:
            return
        for key, stored in ended.items():
            if key not in self._stored or self._stored[key].offset < stored.offset:
                self._stored[key] = stored

    def decoded(self) -> Iterator[tuple[Key, Any]]:
        """What is there, in the order of the log.  Raises ProtocolError."""
        for raw, stored in sorted(self._stored.items(), key=lambda item: item[1].offset):
            if stored.value is None:
                continue
            try:
                key = decode_key(raw)
            except UnknownRecordType as error:
                LOGGER.warning("offset %d: %s; going on without it", stored.offset, error)
                continue
            except ProtocolError as error:
                raise ProtocolError(f"offset {stored.offset}: {error}") from error
            yield key, decode_value(key, stored.value)


def newest_records(log: Log, stop: threading.Event) -> Iterator[tuple[Key, Any]]:
    """What a partition holds: read to its end, decoded as it is used.  Raises KafkaError, ProtocolError, OSError."""
    newest = NewestRecords()
    offset = log.log_start_offset
    while not stop.is_set() and (region := log.read(offset, READ_BYTES).records) is not None:
        for batch in iter_batches(region.read()):
            newest.add(batch)
            offset = batch.last_offset + 1
    yield from newest.decoded()


def _key(record: Record) -> bytes:
    if record.key is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the record at offset {record.offset} has no key")
    return record.key
