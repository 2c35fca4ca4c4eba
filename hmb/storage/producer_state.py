"""What a log knows of idempotent producers, to write each of their batches once.

A producer numbers its records of a partition; a batch names its producer id, epoch, and first sequence number.  The log
keeps each producer's last five batches, because that many requests may be in flight, and decides for a new batch:

- it repeats one of the five: a duplicate, answered with the offsets of the first time and not written again;
- it starts right after the last one: taken;
- anything else is a gap (OUT_OF_ORDER_SEQUENCE_NUMBER), except that a producer which is unknown here may start anywhere
  (its older batches were deleted) and one with a new epoch starts at 0.  An older epoch is INVALID_PRODUCER_EPOCH.

Sequence numbers run from 0 to 2^31 - 1 and then start again at 0.

The state is a function of the log, so after a crash it is made again from the batches.  To keep that short, a snapshot
is written when a segment is rolled and when the log is closed: `<offset>.snapshot`, the state before that offset::

    version int16 = 1 | crc uint32 (CRC-32C of what follows) | count int32 | count times:
        producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
        coordinator epoch int32, first offset of the current transaction int64

Source: KIP-98; Kafka's `ProducerStateManager`.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.crc import crc32c
from hmb.storage.files import open_file

BATCHES_KEPT = 5
EXPIRATION_MS = 24 * 60 * 60 * 1000  # producer.id.expiration.ms
NO_SEQUENCE = -1
SNAPSHOT_HEADER = struct.Struct(">hIi")
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
SNAPSHOT_VERSION = 1


@dataclass(frozen=True, slots=True)
class ProducedBatch:
    """Where a producer's batch was written: sequence numbers and offsets, both ends included; timestamp in ms."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


@dataclass(slots=True)
class Producer:
    epoch: int
    batches: deque[ProducedBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerState:
    """The producers of one log.  Used under the log's lock."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int) -> ProducedBatch | None:
        """None where the batch may be appended, the first writing where it is a duplicate; else a KafkaError."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        if epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} writes with epoch {epoch}, but epoch {producer.epoch} has taken over",
            )
        if epoch > producer.epoch:
            expected = 0
        else:
            for batch in producer.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
            expected = next_sequence(producer.last_sequence)
        if first_sequence != expected:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id}, epoch {epoch}: sequence number {first_sequence} where {expected} is next",
            )
        return None

    def update(self, producer_id: int, epoch: int, batch: ProducedBatch) -> None:
        """Note a batch that was appended."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch != epoch:
            producer = self._producers[producer_id] = Producer(epoch)
        producer.batches.append(batch)

    @property
    def highest_id(self) -> int:
        return max(self._producers, default=-1)

    def last_offsets(self) -> frozenset[int]:
        """The last offset of each producer's last batch."""
        return frozenset(producer.batches[-1].last_offset for producer in self._producers.values() if producer.batches)

    def expire(self, older_than: int) -> None:
        """Forget producers whose last batch has a timestamp (ms) before `older_than`."""
        for producer_id in [
            i for i, p in self._producers.items() if p.batches and p.batches[-1].timestamp < older_than
        ]:
            del self._producers[producer_id]

    def write_snapshot(self, path: Path) -> None:
        entries = b"".join(_snapshot_entry(producer_id, p) for producer_id, p in self._producers.items() if p.batches)
        body = struct.pack(">i", len(entries) // SNAPSHOT_ENTRY.size) + entries
        with open_file(path) as file:
            file.truncate(0)
            file.write(struct.pack(">hI", SNAPSHOT_VERSION, crc32c(body)) + body)

    def load_snapshot(self, path: Path) -> bool:
        """Take over a snapshot; False where it is damaged (the log then tells the same, at the cost of a scan)."""
        data = path.read_bytes()
        if len(data) < SNAPSHOT_HEADER.size:
            return False
        version, crc, count = SNAPSHOT_HEADER.unpack_from(data)
        if version != SNAPSHOT_VERSION or crc != crc32c(data[6:]):
            return False
        if len(data) != SNAPSHOT_HEADER.size + count * SNAPSHOT_ENTRY.size:
            return False
        for entry in SNAPSHOT_ENTRY.iter_unpack(data[SNAPSHOT_HEADER.size :]):
            producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp = entry[:6]
            first = (last_sequence - offset_delta) % 2**31
            batch = ProducedBatch(first, last_sequence, last_offset - offset_delta, last_offset, timestamp)
            self.update(producer_id, epoch, batch)
        return True


def next_sequence(sequence: int) -> int:
    return 0 if sequence == 2**31 - 1 else sequence + 1


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}.snapshot"


def snapshots(directory: Path) -> list[tuple[int, Path]]:
    """The snapshots of a partition's directory with the offset up to which each tells, oldest first."""
    found: Iterable[Path] = directory.glob("*.snapshot")
    return sorted((int(path.stem), path) for path in found if path.stem.isdecimal() and path.stem.isascii())


def delete_old_snapshots(directory: Path) -> None:
    """Keep the newest two: the state before the end, and the one before it should that be damaged."""
    for _, path in snapshots(directory)[:-2]:
        path.unlink(missing_ok=True)


def _snapshot_entry(producer_id: int, producer: Producer) -> bytes:
    last = producer.batches[-1]
    delta = last.last_offset - last.base_offset
    return SNAPSHOT_ENTRY.pack(
        producer_id, producer.epoch, last.last_sequence, last.last_offset, delta, last.timestamp, -1, -1
    )
