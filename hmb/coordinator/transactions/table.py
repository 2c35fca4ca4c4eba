"""The table of transactional ids, in which the threads of all connections find and create ids.

A thread that looks up an id takes no lock. A thread that creates an entry takes the lock of the table, so two threads
never create two entries for one id. Each entry has a lock of its own.

When a producer with the transactional id "billing" starts for the first time, `find_or_make` creates an entry
with a new producer id.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.transactional_id import Transaction
from hmb.protocol.errors import ErrorCode, KafkaError


@dataclass(slots=True, eq=False)
class TransactionEntry:
    """One transactional id with its lock: an entry of `TransactionTable`."""

    transaction: Transaction  # the newest value that is on disk
    transition_in_progress: bool = False  # True while a thread stores a new `transaction`, or writes its markers
    # This lock guards `transaction` and `transition_in_progress`. A thread that also needs the lock of a group or of a
    # log takes this lock first.
    #
    # A thread that holds this lock can append records to a log. An append usually does not wait for the disk. It waits
    # if `flush.messages` requires a sync, or if the log starts a new segment. It also waits if too many files are open:
    # the broker must then close a file, and first sync the file's unsynced bytes.
    lock: threading.Lock = field(default_factory=threading.Lock)
    transition_ended: threading.Condition = field(init=False)  # wakes the threads that wait for the end of a transition

    def __post_init__(self) -> None:
        self.transition_ended = threading.Condition(self.lock)

    def set_transition_in_progress(self, value: bool) -> None:
        """Set `transition_in_progress`. If `value` is False, wake the waiting threads. The caller holds `lock`."""
        self.transition_in_progress = value
        if not value:
            self.transition_ended.notify_all()


class TransactionTable:
    """The entries of all transactional ids of the broker. Thread-safe.

    Each entry has a transactional id as its key. An entry stays in the table until its id has expired (state Dead).
    If the topic of the journal is deleted, all entries are removed.
    """

    def __init__(self, journal: Journal, producer_ids: ProducerIds, clock: Callable[[], int]) -> None:
        self._journal = journal
        self._producer_ids = producer_ids
        self._clock = clock
        self._lock = threading.Lock()  # guards `_entries`; a thread that holds it takes no other lock
        self._entries: dict[str, TransactionEntry] = {}

    def all(self) -> list[TransactionEntry]:
        """Return the entries of all transactional ids."""
        with self._lock:
            return list(self._entries.values())

    def find(
        self, transactional_id: str, missing: ErrorCode = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    ) -> TransactionEntry:
        """Return the entry of a transactional id.

        If the id has no entry, the method raises KafkaError with the error code in the argument `missing`.

        Also raises INVALID_REQUEST, NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS.
        """
        check_transactional_id(transactional_id)
        self._journal.check_coordinates(transactional_id)
        entry = self._entries.get(transactional_id)
        if entry is None:
            raise KafkaError(missing, f"transactional id {transactional_id!r} is unknown")
        return entry

    def find_or_make(self, transactional_id: str) -> TransactionEntry:
        """Return the entry of a transactional id, or create it. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

        A new transactional id gets a new producer id.
        """
        self._journal.check_coordinates(transactional_id)
        if transactional_id not in self._entries:
            made = Transaction(transactional_id, self._producer_ids.allocate(), updated=self._clock())
            with self._lock:
                return self._entries.setdefault(transactional_id, TransactionEntry(made))
        return self._entries[transactional_id]

    def put(self, transaction: Transaction) -> None:
        """Add a transactional id that was read from the journal."""
        with self._lock:
            self._entries[transaction.transactional_id] = TransactionEntry(transaction)

    def remove(self, transactional_id: str) -> None:
        """Remove a transactional id that has expired."""
        with self._lock:
            self._entries.pop(transactional_id, None)

    def clear(self) -> None:
        """Remove all transactional ids, because the topic of the journal was deleted."""
        with self._lock:
            self._entries = {}


def check_transactional_id(transactional_id: str) -> None:
    """Raise INVALID_REQUEST if the transactional id is empty."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
