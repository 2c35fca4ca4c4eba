"""One partition of a journal: its log, its state, and the queue of records that wait for the disk.

The queue of a partition needs no size limit, because each connection can add only a few entries. Each connection has
its own thread. After at most 64 requests (`MAX_DEFERRED` in hmb/broker/network/gathering.py), this thread must call
`Journal.write`, which waits until the entries of these requests are written. For example, each request to commit
offsets adds one entry. So 100 connections that commit offsets have at most 6,400 entries in the queue.

Each commit has at most `max.message.bytes` bytes (about 1 MiB by default), because `OffsetManager` refuses a
larger commit. One connection has at most 64 commits in the queue. By default, they take at most about 64 MiB.

The lock `write_lock` of a partition has no timeout: a thread waits until it gets the lock. This wait always
ends, because each holder of `write_lock` releases it after a short time, and because no deadlock is possible.

The thread that holds `write_lock` does only two short things. First, it writes the queued records to the log, and syncs
the file if the settings demand it. Then it calls the function `apply` of each written entry. This function changes the
coordinator's state in memory. The thread then releases the lock, even if the disk fails and the write raises an error.

No deadlock is possible, because all threads take locks in the same order: the order of the table in
docs/tour/locks.md. For example, `write_lock` comes before the lock of the partition's log. A thread that
already holds the log's lock therefore never takes `write_lock`.
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
    """An entry in the queue of a journal partition: the records of one change.

    `Journal.write` writes these records, or waits while another thread writes them.

    - `done` becomes true when a thread has tried to write the records, even if the write failed.
    - `failure` is the error if the write failed. Otherwise, it is None.
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

    - `queue` contains the changes that wait to be written, the oldest first. Each entry (`QueuedRecords`) contains
      the records of one change.
    - Any thread can add an entry to the end of `queue`, but only while `state` is ACTIVE.
    - Only a thread that holds `write_lock` removes entries from the front of `queue`, and writes their records.
    """

    def __init__(self, log: Log, state: LoadingState) -> None:
        self.log, self.state = log, state
        self.queue: deque[QueuedRecords] = deque()
        # A thread must hold `write_lock` while it writes queued records to the log. After a successful write, the
        # thread keeps `write_lock`, and calls the function `apply` of each written `QueuedRecords`. `apply` can take
        # another lock, for example the lock of `OffsetManager`.
        #
        # A thread that needs several locks takes the lock of a group first, then `write_lock`, and then the locks of
        # the log.
        self.write_lock = threading.Lock()
