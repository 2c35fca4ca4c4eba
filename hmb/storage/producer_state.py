"""The producers of one log: how idempotent producers write each batch once, and which transactions are open.

A producer numbers the records that it sends to a partition. Each batch contains the producer's id, its epoch and the
sequence number of its first record. The log keeps the last five batches of each producer, because a producer may have
five requests in flight. For a new batch the log decides:

- The batch repeats one of the five: it is a duplicate. The answer contains the offsets of the first append, and the log
  does not write the batch again.
- The batch starts right after the last one: the log appends it.
- The batch starts anywhere else: OUT_OF_ORDER_SEQUENCE_NUMBER. Two cases are exceptions. An unknown producer may start
  anywhere, because its older batches were deleted. A producer with a new epoch starts at 0.
- The batch has an older epoch than the producer: INVALID_PRODUCER_EPOCH.

Sequence numbers run from 0 to 2^31 - 1 and then start again at 0.

The log forgets a producer 24 hours after its last append (`producer.id.expiration.ms`). The broker's clock decides, not
the batch's timestamp: a client sets the timestamp, and may set it to last year or to none (-1). A broker that starts
does not know when it appended the batches on disk. It takes the time of the start for all of them, so that no producer
is forgotten too early. (Kafka expires a producer by the timestamp of its last batch.)

A batch with the transactional bit opens its producer's transaction in this partition, unless one is open already. A
marker (records/control.py) with the producer's id ends the transaction. The records from the first open transaction on
are unstable, because they may still be aborted. The *last stable offset* is the offset of the first unstable record, or
the high watermark if no transaction is open. An aborted transaction gets an entry in the transaction index.

The state depends only on the log, so after a crash a broker can build it again from the batches. A snapshot shortens
that. The log writes one when it rolls a segment and when it is closed. `<offset>.snapshot` is the state before that
offset::

    version int16 = 1 | crc uint32 (CRC-32C of the bytes after it) | count int32 | count times:
        producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
        coordinator epoch int32, first offset of the current transaction int64

A snapshot has one timestamp for each producer. As in Kafka, this timestamp is the greatest one of the producer's last
batch, or the time of its last marker. DescribeProducers shows this number. The time of the append is not stored. If
only a marker of a producer is known, its last sequence and last offset are -1. The first offset is -1 while the
producer has no open transaction.

Source: KIP-98; Kafka's `ProducerStateManager`.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, ControlType, EndTransactionMarker, RecordBatch, control_type, decode_marker
from hmb.records.crc import crc32c
from hmb.storage.transaction_index import AbortedTransaction

BATCHES_KEPT = 5
EXPIRATION_MS = 24 * 60 * 60 * 1000  # producer.id.expiration.ms
LOGGER = logging.getLogger(__name__)
NO_SEQUENCE = NO_OFFSET = NO_EPOCH = -1
SNAPSHOT_HEADER = struct.Struct(">hIi")
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1
# Brokers assign producer ids by counting up from 0, so no assigned id is greater than this limit. A client can write
# any id up to 2^63 - 1 into a batch. An id above the limit must not raise the brokers' counter.
HIGHEST_ASSIGNED_ID = 2**62


@dataclass(frozen=True, slots=True)
class ProducedBatch:
    """A producer's batch in the log: the first and the last of its sequence numbers and offsets."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


@dataclass(slots=True)
class ProducerStateEntry:
    epoch: int
    batches: deque[ProducedBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))  # oldest first
    timestamp: int = NO_TIMESTAMP  # timestamp (ms) in its last batch or marker, which the client has set
    coordinator_epoch: int = NO_EPOCH  # coordinator epoch in its last marker
    appended_at: int = 0  # the broker's time (ms) of the last append of a batch or marker of this producer

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ActiveProducer(NamedTuple):
    producer_id: int
    producer: ProducerStateEntry
    first_offset: int  # first offset of its open transaction; -1: no transaction is open


class LastBatch(NamedTuple):
    """The batch with a producer's last sequence number.

    The batch ends at `last_offset`. If `last_offset` is -1, the batch is a marker with the producer's epoch.
    """

    last_offset: int
    epoch: int

    def is_in(self, batch: RecordBatch) -> bool:
        if self.last_offset == NO_OFFSET:
            return batch.is_control and batch.producer_epoch == self.epoch
        return batch.last_offset == self.last_offset


class ProducerState:
    """The producers of one log. The caller of each method holds the log's lock.

    Invariant: first offsets in `_open` grow, so that its first entry is the oldest transaction.
    """

    def __init__(self, loaded_at: int) -> None:
        """Create an empty state. Batches that a start reads from disk get `loaded_at` (ms) as their time of append."""
        self._loaded_at = loaded_at
        self._producers: dict[int, ProducerStateEntry] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset of its open transaction

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, batch: RecordBatch) -> ProducedBatch | None:
        """Return None if the batch may be appended. If it is a duplicate, return the batch that was appended first.

        Raises KafkaError if the batch has a wrong epoch or sequence number.
        """
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        self.check_epoch(producer_id, epoch)
        if batch.base_sequence == NO_SEQUENCE:
            return None  # The broker itself writes such batches of committed offsets, and never repeats one.
        expected = 0
        if epoch == producer.epoch:
            for known in producer.batches:
                if known.first_sequence == batch.base_sequence and known.last_sequence == batch.last_sequence:
                    return known
            expected = next_sequence(producer.last_sequence)
        first = batch.base_sequence
        if first != expected:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}, epoch {epoch}: sequence number {first}, but {expected} is expected",
            )
        if producer_id in self._open and not batch.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has an open transaction here, and writes a batch that does not belong to it",
            )
        return None

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raise INVALID_PRODUCER_EPOCH if the log has a batch with a newer epoch of the producer."""
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} writes with epoch {epoch}, but epoch {producer.epoch} has taken over",
            )

    def check_marker(self, producer_id: int, epoch: int, marker: EndTransactionMarker) -> None:
        """Raise KafkaError if the log has a newer epoch of the producer or of its transaction coordinator."""
        self.check_epoch(producer_id, epoch)
        producer = self._producers.get(producer_id)
        if producer is not None and marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} of a marker is older than {producer.coordinator_epoch}",
            )

    def note(self, batch: RecordBatch, base_offset: int, appended_at: int) -> None:
        """Note a batch of records that the log appended at `base_offset`, at the time `appended_at` (ms)."""
        producer = self._producer(batch.producer_id, batch.producer_epoch)
        last_offset = base_offset + batch.last_offset_delta
        producer.batches.append(ProducedBatch(batch.base_sequence, batch.last_sequence, base_offset, last_offset))
        producer.timestamp, producer.appended_at = batch.max_timestamp, appended_at
        if batch.is_transactional and batch.producer_id not in self._open:
            self._open[batch.producer_id] = base_offset

    def note_marker(
        self, producer_id: int, epoch: int, marker: EndTransactionMarker, timestamp: int, appended_at: int
    ) -> None:
        """End the producer's transaction: the log appended its marker at the time `appended_at` (ms)."""
        producer = self._producer(producer_id, epoch)
        producer.timestamp, producer.appended_at = timestamp, appended_at
        producer.coordinator_epoch = marker.coordinator_epoch
        self._open.pop(producer_id, None)

    def aborted_by(self, marker: EndTransactionMarker, producer_id: int, offset: int) -> AbortedTransaction | None:
        """Return the entry of the transaction index for a marker; None for a commit, or if no transaction is open."""
        first_offset = self._open.get(producer_id)
        if first_offset is None or marker.control_type is not ControlType.ABORT:
            return None
        still_open = (first for other, first in self._open.items() if other != producer_id)
        return AbortedTransaction(producer_id, first_offset, offset, next(still_open, offset + 1))

    def replay(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Update the state for a batch of the log. Return the entry of the transaction index if it is an abort marker.

        Raises KafkaError if the record of a control batch is not a marker.
        """
        if not batch.is_control:
            self.note(batch, batch.base_offset, self._loaded_at)
            return None
        for record in batch.records():  # one record, or none after compaction
            if control_type(record) in (ControlType.ABORT, ControlType.COMMIT):
                marker = decode_marker(record)
                aborted = self.aborted_by(marker, batch.producer_id, batch.base_offset)
                producer = batch.producer_id, batch.producer_epoch
                self.note_marker(*producer, marker, batch.max_timestamp, self._loaded_at)
                return aborted
        return None

    def _producer(self, producer_id: int, epoch: int) -> ProducerStateEntry:
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = ProducerStateEntry(epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        return producer

    @property
    def highest_id(self) -> int:
        """The greatest producer id in the log that a broker can have assigned, or -1."""
        return max((producer_id for producer_id in self._producers if producer_id <= HIGHEST_ASSIGNED_ID), default=-1)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if no transaction is open."""
        return next(iter(self._open.values()), None)

    def active(self, only: int | None) -> list[ActiveProducer]:
        """Return the producers that the log remembers, or only the one with the id `only`."""
        wanted = list(self._producers) if only is None else [only] if only in self._producers else []
        return [ActiveProducer(i, replace(self._producers[i]), self._open.get(i, NO_OFFSET)) for i in wanted]

    def last_batches(self) -> dict[int, LastBatch]:
        """Return the last batch of each producer by producer id. Compaction never drops these batches."""
        return {
            producer_id: LastBatch(producer.batches[-1].last_offset if producer.batches else NO_OFFSET, producer.epoch)
            for producer_id, producer in self._producers.items()
        }

    def expire(self, older_than: int) -> None:
        """Forget each producer whose last append was before `older_than` (ms), unless its transaction is open."""
        expired = [i for i, p in self._producers.items() if p.appended_at < older_than and i not in self._open]
        for producer_id in expired:
            del self._producers[producer_id]

    def save(self, directory: Path, offset: int) -> None:
        """Write the snapshot of a log that ends at `offset`, and delete old ones. Raises OSError."""
        self.write_snapshot(snapshot_path(directory, offset))
        delete_old_snapshots(directory)

    def write_snapshot(self, path: Path) -> None:
        """Write the state to a snapshot file, without a sync, as the log contains the same state. Raises OSError."""
        entries = b"".join(self._snapshot_entry(*item) for item in self._producers.items())
        body = struct.pack(">i", len(entries) // SNAPSHOT_ENTRY.size) + entries
        path.write_bytes(struct.pack(">hI", SNAPSHOT_VERSION, crc32c(body)) + body)

    def _snapshot_entry(self, producer_id: int, producer: ProducerStateEntry) -> bytes:
        sequence, offset, delta = NO_SEQUENCE, NO_OFFSET, 0
        if producer.batches:
            last = producer.batches[-1]
            sequence, offset, delta = last.last_sequence, last.last_offset, last.last_offset - last.base_offset
        transaction = producer.coordinator_epoch, self._open.get(producer_id, NO_OFFSET)
        return SNAPSHOT_ENTRY.pack(
            producer_id, producer.epoch, sequence, offset, delta, producer.timestamp, *transaction
        )

    def load_snapshot(self, path: Path) -> bool:
        """Read a snapshot. Return False if it is damaged: the caller then rebuilds the state from the log."""
        data = path.read_bytes()
        if len(data) < SNAPSHOT_HEADER.size:
            return False
        version, crc, count = SNAPSHOT_HEADER.unpack_from(data)
        if version != SNAPSHOT_VERSION or crc != crc32c(data[6:]):
            return False
        if len(data) != SNAPSHOT_HEADER.size + count * SNAPSHOT_ENTRY.size:
            return False
        for entry in SNAPSHOT_ENTRY.iter_unpack(data[SNAPSHOT_HEADER.size :]):
            self._load_entry(*entry)
        self._open = dict(sorted(self._open.items(), key=lambda item: item[1]))
        return True

    def _load_entry(
        self,
        producer_id: int,
        epoch: int,
        last_sequence: int,
        last_offset: int,
        offset_delta: int,
        timestamp: int,
        coordinator_epoch: int,
        first_offset: int,
    ) -> None:
        producer = self._producers[producer_id] = ProducerStateEntry(
            epoch, timestamp=timestamp, coordinator_epoch=coordinator_epoch, appended_at=self._loaded_at
        )
        if last_offset != NO_OFFSET:
            first_sequence = (last_sequence - offset_delta) % 2**31
            producer.batches.append(
                ProducedBatch(first_sequence, last_sequence, last_offset - offset_delta, last_offset)
            )
        if first_offset != NO_OFFSET:
            self._open[producer_id] = first_offset


def next_sequence(sequence: int) -> int:
    return 0 if sequence == 2**31 - 1 else sequence + 1


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}.snapshot"


def snapshots(directory: Path) -> list[tuple[int, Path]]:
    """Return the snapshots of a partition's directory, each with the log's end offset at that time, oldest first."""
    found: Iterable[Path] = directory.glob("*.snapshot")
    return sorted((int(path.stem), path) for path in found if path.stem.isdecimal() and path.stem.isascii())


def delete_old_snapshots(directory: Path) -> None:
    """Delete all snapshots but the newest two. A start uses the older one if the newer one is damaged."""
    for _, path in snapshots(directory)[:-2]:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:  # for example, a directory has this name; appends continue
            LOGGER.warning("%s", error)
