"""One partition of a journal: its log, its state, and the queue of records that wait for the disk."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto

from hmb.coordinator.journal.records import KeyAndValue
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.errors import KafkaError
from hmb.records import EndTransactionMarker
from hmb.storage.log import Log

RECORD_OVERHEAD = 32  # bytes, the maximum of a record without its key and value

Apply = Callable[[], None]  # changes the memory of the coordinator after the records are durable


class LoadingState(Enum):
    """The state of a journal's partition."""

    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()  # A record cannot be read, so the coordinator serves nothing from this partition.


class Pending:
    """Records in the queue of a partition. They are durable after `Journal.write`."""

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
        """The maximum size in bytes."""
        return sum(len(key) + len(value or b"") + RECORD_OVERHEAD for key, value in self.records)


class JournalPartition:
    """One partition of the topic of a journal."""

    def __init__(self, log: Log, state: LoadingState) -> None:
        self.log, self.state = log, state
        self.queue: deque[Pending] = deque()
        # The thread that holds this lock writes all queued records. A thread that needs several locks takes the lock of
        # a group first, then this lock, then the locks of the log.
        self.turn = threading.Lock()
