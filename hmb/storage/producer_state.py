"""Each log keeps the state of its producers, to find duplicate batches and open transactions.

An idempotent producer numbers the records that it sends to a partition. Each of its batches contains the id
and the epoch of the producer, and the sequence number of the batch's first record. The producer may have at
most five requests in flight (sent, but not yet answered). If it receives no response, it may send any of them
again. To recognize such a repeated batch, the log remembers the last five batches of each producer.

The log checks a new batch with these rules, from top to bottom, and uses the first rule that fits:
- The batch has an older epoch than the producer's newest epoch. The log refuses the batch with
  INVALID_PRODUCER_EPOCH.
- The batch has the same epoch and the same sequence numbers as one of the producer's last five batches, so it
  is a duplicate. The log does not append it again, and the response contains the offsets of the first append.
- The sequence numbers of the batch do not continue those of the producer's last batch. The log refuses the
  batch with OUT_OF_ORDER_SEQUENCE_NUMBER. The next paragraph lists three exceptions.
- The producer has an open transaction, and the batch is not transactional. The log refuses the batch with
  INVALID_TXN_STATE.
- In all other cases, the log appends the batch.

Usually, the sequence number of a new batch must follow the last sequence number of the producer's last batch.
The log does not require this in three cases:
- The log does not know the producer. It may have deleted the producer's older batches, so it accepts any
  sequence number.
- The batch has a newer epoch than the producer's last batch. Its sequence number must then be 0.
- The batch contains committed offsets, and the broker itself has written it. The broker writes such batches
  without sequence numbers.

For example, producer 7 has appended two batches, with the sequence numbers 0 to 9 and 10 to 19. If the batch with 10 to
19 arrives again, it is a duplicate. A batch that begins with 20 is appended. A batch that begins with 30 is refused,
because the batch that begins with 20 is missing.

The sequence numbers of a producer run from 0 to 2^31 - 1, and then begin at 0 again.

The log forgets a producer 24 hours after the producer's last append, unless the producer has an open transaction. In
Kafka, `producer.id.expiration.ms` sets this time, and 24 hours is its default. HMB has no such setting, because few
users need another value. With a shorter time, a producer that pauses can write duplicates. With a longer time, a broker
with many short-lived producers needs more memory.

The log measures the 24 hours with the broker's clock. It does not use the timestamps in batches, because a
client can set a timestamp to any value.

A batch on disk does not contain the time of its append. After a restart, the log therefore forgets an idle
producer 24 hours after the broker's start. This is more than 24 hours after the producer's last append. (Kafka
counts from the timestamp of the last batch.)

A batch with the transactional bit belongs to a transaction. If the producer has no open transaction in this partition,
the batch opens one. A marker with the producer's id ends the transaction (records/control.py). If the marker aborts the
transaction, the log adds an entry to the transaction index.

An open transaction may still abort. The records from its start to the end of the log are therefore *unstable*.
The *last stable offset* is the first offset of the oldest open transaction, or the high watermark if no
transaction is open.

A *snapshot* is a file with a copy of the producers' state. After a crash, the broker loads a snapshot, and then
reads only the later batches of the log to rebuild the current state. The log writes a snapshot when it starts a
new segment and when it is closed. The file `<offset>.snapshot` contains the state after all batches below
`<offset>`:
    version int16 = 1 | crc uint32 (CRC-32C of the bytes after it) | count int32 | count times:
        producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
        coordinator epoch int32, first offset of the current transaction int64

A snapshot of the producers' state contains each producer's id and newest epoch, and these values:
- The last sequence number and the last offset of the producer's last batch. Both numbers are -1 if the producer
  has no batch with the newest epoch.
- The offset delta: the last offset minus the first offset of this batch.
- The timestamp of the producer's last batch or last transaction marker, whichever comes later in the log. The
  timestamp of a batch is its greatest timestamp, as in Kafka.
- The coordinator epoch of the producer's last marker. The log refuses markers with an older coordinator epoch.
- The first offset of the producer's open transaction, or -1 if the producer has no open transaction.

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

from hmb.protocol.enums import MAX_IN_FLIGHT, NO_COORDINATOR_EPOCH, NO_OFFSET, NO_PRODUCER_ID, NO_SEQUENCE
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import NO_TIMESTAMP, ControlType, EndTransactionMarker, RecordBatch, control_type, decode_marker
from hmb.records.control import MARKERS
from hmb.records.crc import crc32c
from hmb.records.producer_numbers import increment_sequence
from hmb.storage.transaction_index import AbortedTransaction
from hmb.units import DAY_MS

EXPIRATION_MS = DAY_MS  # producer.id.expiration.ms
LOGGER = logging.getLogger(__name__)
SNAPSHOT_HEADER = struct.Struct(">hIi")  # version, CRC, number of entries
SNAPSHOT_CRC_START = 6  # the CRC covers the bytes from this position on
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1
# A broker's counter of producer ids begins at 0, and never reaches this limit. When a broker starts, the counter
# continues after the highest id in the logs. But clients can write any id up to 2^63 - 1 into a batch. So the broker
# ignores ids above this limit: no broker has assigned them.
HIGHEST_ASSIGNED_ID = 2**62


class BatchMetadata(NamedTuple):
    """A batch of a producer in the log: its first and last sequence numbers, and its first and last offsets."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


@dataclass(slots=True)
class ProducerStateEntry:
    """The state of one producer in a log: its newest epoch, and its last batches with this epoch.

    `batches` contains at most MAX_IN_FLIGHT batches. When a marker with a newer epoch arrives, `batches` becomes
    empty. When a batch with a newer epoch arrives, `batches` contains only this batch.
    """

    epoch: int
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=MAX_IN_FLIGHT))  # oldest batch first
    timestamp: int = NO_TIMESTAMP  # the timestamp (ms) of the producer's last batch or last marker
    coordinator_epoch: int = NO_COORDINATOR_EPOCH  # coordinator epoch in the producer's last marker
    appended_at: int = 0  # time (ms) at which the broker last appended a batch or a marker of this producer

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ActiveProducer(NamedTuple):
    """A producer that the log remembers: its id, its state, and the start of its open transaction."""

    producer_id: int
    producer: ProducerStateEntry
    first_offset: int  # first offset of the producer's open transaction; -1 if no transaction is open


class LastBatch(NamedTuple):
    """The last batch of a producer. It contains the producer's last sequence number, so compaction keeps it.

    `last_offset` is the offset of the batch's last record. It is -1 if the producer has written no batch with its
    newest epoch. In this case, compaction keeps the producer's transaction markers with this epoch.
    """

    last_offset: int
    epoch: int

    def is_in(self, batch: RecordBatch) -> bool:
        if self.last_offset == NO_OFFSET:
            return batch.is_control and batch.producer_epoch == self.epoch
        return batch.last_offset == self.last_offset


class ProducerState:
    """The state of the producers of one log. A caller of any method must hold the log's lock.

    Invariants:

    - `_open` contains the first offset of each open transaction. The oldest open transaction comes first.
    - Each producer in `_open` is also in `_producers`.
    - The state keeps at most MAX_IN_FLIGHT batches of each producer, in the order of their offsets. All of them
      have the producer's current epoch.
    """

    def __init__(self, loaded_at: int) -> None:
        """Create an empty state.

        The log does not store when it appended a batch. Each batch that is read from disk therefore gets the append
        time `loaded_at` (ms).
        """
        self._loaded_at = loaded_at
        self._producers: dict[int, ProducerStateEntry] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset of its open transaction

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return None if the log may append the batch, or the metadata of the batch's copy in the log.

        The method finds a copy only among the producer's last five batches. Raises KafkaError for a wrong epoch,
        sequence number or transactional bit.
        """
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        self.check_epoch(producer_id, epoch)
        if batch.base_sequence == NO_SEQUENCE:
            # Only the broker itself writes batches with a producer id but without sequence numbers, to commit offsets
            # in a transaction. It writes each of them only once, so this batch is not a duplicate.
            return None
        expected = 0
        if epoch == producer.epoch:
            for known in producer.batches:
                if known.first_sequence == batch.base_sequence and known.last_sequence == batch.last_sequence:
                    return known
            expected = increment_sequence(producer.last_sequence, 1)
        first = batch.base_sequence
        if first != expected:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}, epoch {epoch}: sequence number {first}, but {expected} is expected",
            )
        if producer_id in self._open and not batch.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has an open transaction in the partition, but this batch is not transactional",
            )
        return None

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raise INVALID_PRODUCER_EPOCH if `epoch` is older than the producer's epoch in the log."""
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} writes with epoch {epoch}, but its newest epoch is {producer.epoch}",
            )

    def check_marker(self, producer_id: int, epoch: int, marker: EndTransactionMarker) -> None:
        """Raise KafkaError if the epoch of the producer or of its coordinator is older than the epoch in the log."""
        self.check_epoch(producer_id, epoch)
        producer = self._producers.get(producer_id)
        if producer is not None and marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} of a marker is older than {producer.coordinator_epoch}",
            )

    def add_batch(self, batch: RecordBatch, base_offset: int, appended_at: int) -> None:
        """Update the state after the log has appended a batch at `base_offset`, at the time `appended_at` (ms)."""
        producer = self._producer(batch.producer_id, batch.producer_epoch)
        last_offset = base_offset + batch.last_offset_delta
        producer.batches.append(BatchMetadata(batch.base_sequence, batch.last_sequence, base_offset, last_offset))
        producer.timestamp, producer.appended_at = batch.max_timestamp, appended_at
        if batch.is_transactional and batch.producer_id not in self._open:
            self._open[batch.producer_id] = base_offset

    def add_marker(
        self, producer_id: int, epoch: int, marker: EndTransactionMarker, timestamp: int, appended_at: int
    ) -> None:
        """Update the state after the log has appended a marker, which ends the producer's transaction.

        `timestamp` is the time (ms) in the marker. `appended_at` is the time (ms) at which the log appended the marker.
        """
        producer = self._producer(producer_id, epoch)
        producer.timestamp, producer.appended_at = timestamp, appended_at
        producer.coordinator_epoch = marker.coordinator_epoch
        self._open.pop(producer_id, None)

    def aborted_by(self, marker: EndTransactionMarker, producer_id: int, offset: int) -> AbortedTransaction | None:
        """Return the transaction index entry if `marker` aborts an open transaction, or else None."""
        first_offset = self._open.get(producer_id)
        if first_offset is None or marker.control_type is not ControlType.ABORT:
            return None
        still_open = (first for other, first in self._open.items() if other != producer_id)
        return AbortedTransaction(producer_id, first_offset, offset, next(still_open, offset + 1))

    def replay(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Update the state of the producers for a batch that the broker has read from the log.

        If the batch is a marker that aborts an open transaction, return an entry for the transaction index. For every
        other batch, return None.

        Raises KafkaError if the record of a control batch cannot be decoded.
        """
        if not batch.is_control:
            self.add_batch(batch, batch.base_offset, self._loaded_at)
            return None
        for record in batch.records():  # A control batch has one record, or no record after compaction.
            if control_type(record) in MARKERS:
                marker = decode_marker(record)
                aborted = self.aborted_by(marker, batch.producer_id, batch.base_offset)
                producer = batch.producer_id, batch.producer_epoch
                self.add_marker(*producer, marker, batch.max_timestamp, self._loaded_at)
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
        """The greatest producer id in the log that is at most HIGHEST_ASSIGNED_ID; -1 if no such id exists.

        Brokers never assign greater ids, but a client can write them into a batch.
        """
        assigned = (producer_id for producer_id in self._producers if producer_id <= HIGHEST_ASSIGNED_ID)
        return max(assigned, default=NO_PRODUCER_ID)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if no transaction is open."""
        return next(iter(self._open.values()), None)

    def active(self, only: int | None) -> list[ActiveProducer]:
        """Return the producers that the log remembers. If `only` is a producer id, skip all other producers."""
        wanted = list(self._producers) if only is None else [only] if only in self._producers else []
        return [ActiveProducer(i, replace(self._producers[i]), self._open.get(i, NO_OFFSET)) for i in wanted]

    def last_batches(self) -> dict[int, LastBatch]:
        """Return the last batch of each producer, by producer id. Compaction never removes these batches."""
        return {
            producer_id: LastBatch(producer.batches[-1].last_offset if producer.batches else NO_OFFSET, producer.epoch)
            for producer_id, producer in self._producers.items()
        }

    def expire(self, older_than: int) -> None:
        """Forget each producer whose last append was before `older_than` (ms), unless it has an open transaction."""
        expired = [i for i, p in self._producers.items() if p.appended_at < older_than and i not in self._open]
        for producer_id in expired:
            del self._producers[producer_id]

    def save(self, directory: Path, offset: int) -> None:
        """Write a snapshot of this state, for a log that ends at `offset`. Delete old snapshots. Raises OSError."""
        self.write_snapshot(snapshot_path(directory, offset))
        delete_old_snapshots(directory)

    def write_snapshot(self, path: Path) -> None:
        """Write the state to a file. A sync is unnecessary: the log can restore the state. Raises OSError."""
        entries = b"".join(self._snapshot_entry(*item) for item in self._producers.items())
        count = len(entries) // SNAPSHOT_ENTRY.size
        body = SNAPSHOT_HEADER.pack(SNAPSHOT_VERSION, 0, count)[SNAPSHOT_CRC_START:] + entries
        path.write_bytes(SNAPSHOT_HEADER.pack(SNAPSHOT_VERSION, crc32c(body), count) + entries)

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
        """Read the state from a snapshot. Return False if the snapshot is damaged. Raises OSError."""
        data = path.read_bytes()
        if len(data) < SNAPSHOT_HEADER.size:
            return False
        version, crc, count = SNAPSHOT_HEADER.unpack_from(data)
        if version != SNAPSHOT_VERSION or crc != crc32c(data[SNAPSHOT_CRC_START:]):
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
            first_sequence = increment_sequence(last_sequence, -offset_delta)
            producer.batches.append(
                BatchMetadata(first_sequence, last_sequence, last_offset - offset_delta, last_offset)
            )
        if first_offset != NO_OFFSET:
            self._open[producer_id] = first_offset


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}.snapshot"


def snapshots(directory: Path) -> list[tuple[int, Path]]:
    """Return the snapshots in a partition's directory, each with the offset in its name, oldest first."""
    found: Iterable[Path] = directory.glob("*.snapshot")
    return sorted((int(path.stem), path) for path in found if path.stem.isdecimal() and path.stem.isascii())


def delete_old_snapshots(directory: Path) -> None:
    """Delete all snapshots except the two newest. The broker uses the older one if the newest is damaged."""
    for _, path in snapshots(directory)[:-2]:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:  # For example, a directory has this name. The log still accepts appends.
            LOGGER.warning("%s", error)
