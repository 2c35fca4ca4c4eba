"""Access to the idempotent producers of a log, for threads that do not append batches.

An append uses the state of the producers (producer_state.py) while it holds the log's lock. Other threads use the same
state: DescribeProducers lists the producers, housekeeping forgets old ones, and the transaction coordinator ends their
transactions. `LogProducers` and `append_marker` take the lock for these threads.

To end a transaction, the coordinator appends a *marker* to each partition of the transaction. A marker is a batch with
one record (records/control.py), and it gets an offset like any other batch. For example, producer 7 has written the
offsets 100 to 109 in a transaction, and the log ends at 110. The marker ABORT gets the offset 110. The last stable
offset moves from 100 to 111, and the transaction index gets an entry for the offsets 100 to 110.

Source: KIP-98; Kafka's `ProducerStateManager`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hmb.records import NO_TIMESTAMP, EndTransactionMarker, encode_marker
from hmb.storage.producer_state import EXPIRATION_MS, ActiveProducer, LastBatch, ProducerState
from hmb.storage.time_index import TimestampOffset

if TYPE_CHECKING:  # A real import would be circular: log.py imports this module.
    from hmb.storage.log import AppendResult, Log


class LogProducers:
    """Access to the idempotent producers of a log, for threads that do not hold the log's lock. Thread-safe."""

    def __init__(self, lock: threading.Lock, state: ProducerState) -> None:
        """Store the log's lock, and the state that this lock guards."""
        self._lock = lock
        self._state = state

    @property
    def highest_id(self) -> int:
        """The greatest producer id that the log remembers; -1 if the log remembers no producer."""
        with self._lock:
            return self._state.highest_id

    def last_batches(self) -> dict[int, LastBatch]:
        """Return the last batch of each idempotent producer, by producer id."""
        with self._lock:
            return self._state.last_batches()

    def active(self, only: int | None = None) -> list[ActiveProducer]:
        """Return the idempotent producers that the log remembers, or only the producer with the id `only`."""
        with self._lock:
            return self._state.active(only)

    def expire(self, now: int) -> None:
        """Forget each producer whose last append was EXPIRATION_MS or more ago, unless it has an open transaction."""
        with self._lock:
            self._state.expire(now - EXPIRATION_MS)


def append_marker(log: Log, marker: EndTransactionMarker, producer_id: int, producer_epoch: int) -> AppendResult:
    """Append the marker that ends a producer's transaction in this partition, for the transaction coordinator.

    Raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
    """
    state, now = log.producer_state, log.clock()
    while True:
        with log.lock:
            offset = log.log_end_offset
            state.check_marker(producer_id, producer_epoch, marker)
            places = {"base_offset": offset, "leader_epoch": log.leader_epoch}
            data = encode_marker(marker, now, producer_id, producer_epoch, **places)
            aborted = state.aborted_by(marker, producer_id, offset)
            if result := log.write([data], offset, offset, TimestampOffset(now, offset), NO_TIMESTAMP, aborted):
                state.add_marker(producer_id, producer_epoch, marker, now, now)
                return result
        log.flush()
