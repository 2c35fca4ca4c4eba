"""Methods that take a log's lock to read or change the state of the log's idempotent producers.

A log's lock guards the state of its producers (producer_state.py). A thread that appends a batch already holds
this lock when it uses the state. Other threads do not hold the lock, for example a thread that removes old
producers. These threads use `LogProducers`, whose methods take the lock.

Source: KIP-98; Kafka's `ProducerStateManager`.
"""

from __future__ import annotations

import threading

from hmb.storage.producer_state import EXPIRATION_MS, ActiveProducer, LastBatch, ProducerState


class LogProducers:
    """The idempotent producers of a log. Thread-safe.

    Each method takes the log's lock, so the caller must not hold this lock.
    """

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
