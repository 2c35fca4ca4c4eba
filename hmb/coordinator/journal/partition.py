"""One partition of a journal: its log, its state, and the queue of records that wait for the disk.

The queue of a partition needs no limit, because each connection can add only a few entries. Each connection has its own
thread. A thread adds entries for at most 64 requests (`MAX_DEFERRED` in hmb/broker/network/gathering.py). It must then
call `Journal.write`, which waits until these entries have left the queue. Each request to commit offsets adds one
entry. So the commits of 100 connections add at most 6,400 entries to the queue.

The records of one commit have at most `max.message.bytes` bytes (1 MiB by default), because `OffsetManager` refuses
larger commits before it adds them to the journal's queue. The thread of a connection adds the commits of at most 64
requests before it waits. So the commits of one connection take at most 64 MiB in this queue.

A thread waits for the lock `write_lock` of a partition without a time limit. This wait always ends, because the thread
that holds `write_lock` always releases it after a short time, and because no deadlock is possible.

The thread that holds `write_lock` releases it after a short time, because the thread only does two short things. It
writes and syncs a file. It then calls the function `apply` of each entry, which changes the coordinator's state in
memory. If the disk fails, the write raises an error, and the thread also releases the lock.

The thread that holds `write_lock` takes only locks that come after `write_lock` in the list in docs/tour/locks.md. So
two threads never wait for each other, and no deadlock is possible.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto

from hmb.coordinator.journal.records import KeyAndValue
from hmb.protocol.errors import KafkaError
from hmb.records import EndTransactionMarker
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.records.record import MAX_RECORD_OVERHEAD
from hmb.storage.log import Log

Apply = Callable[[], None]  # changes the coordinator's state in memory after the records are durable


class LoadingState(Enum):
    """The state of one partition of a journal: whether its records are loaded."""

    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()  # A record cannot be read, so the coordinator answers requests for this partition with errors.


class QueuedRecords:
    """Records in the queue of a partition. `Journal.write` makes them durable.

    - `done` is true after a thread has written the records, or has failed to write them.
    - `failure` is the error if the records could not be written.
    """

    __slots__ = ("apply", "done", "failure", "marker", "partition", "producer", "records")

    def __init__(
        self,
        partition: JournalPartition,
        records: Sequence[KeyAndValue],
        apply: Apply | None,
        producer: ProducerIdAndEpoch | None,
        marker: EndTransactionMarker | None,
    ) -> None:
        self.partition, self.records, self.apply = partition, records, apply
        self.producer, self.marker = producer, marker
        self.done = False
        self.failure: KafkaError | None = None

    @property
    def size(self) -> int:
        """An upper bound for the size of the records in the log, in bytes."""
        return sum(len(key) + len(value or b"") + MAX_RECORD_OVERHEAD for key, value in self.records)


class JournalPartition:
    """One partition of a journal's topic.

    - `queue` contains entries (`QueuedRecords`). Each entry contains the records of one change that are not written
      yet. The entries are in the order in which the coordinator's state changes.
    - Every thread can add entries to the end of `queue`. The thread of a connection adds at most 64 entries, and then
      waits until they are written.
    - Only a thread that holds `write_lock` removes entries from the front of `queue`, and writes their records. When
      this thread has finished an entry, the field `done` of the entry is true.
    - When `state` is not ACTIVE, no thread adds entries.
    """

    def __init__(self, log: Log, state: LoadingState) -> None:
        self.log, self.state = log, state
        self.queue: deque[QueuedRecords] = deque()
        # A thread must hold this lock while it writes queued records to the log. A thread that needs several locks
        # takes them in this order: the lock of a group, this lock, and then the locks of the log. After the write, the
        # thread calls the function `apply` of each entry. This function can take another lock, for example the lock of
        # `OffsetManager`.
        self.write_lock = threading.Lock()
