"""A producer's batch, the queue of its partition, and the queues that one sender thread serves.

Records of one partition keep the order in which they were sent, so each partition has a queue of batches. A sender
takes batches from the front of the queue. A batch stays in the queue until it is delivered or has failed.

A sender need not wait for the response to one batch before it sends the next one. The queue's *window* limits how many
batches of the partition are in flight::

    window           used
    1                at the start, and after a failure until every batch sent before the failure is completed
    `max_in_flight`  from the first batch that the broker has written, until a failure
    0                after a failure, until the batches sent after the failed one are answered, too

While the window is 0, the producer sends no batch of the partition. When it decides what happens to a failed batch, it
therefore knows the results of the batches sent after it, and no batch of the partition is in flight.

Only one sender thread at a time sends the batches of a queue, or moves the queue to another sender. The thread's data
about batches in flight therefore needs no lock.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.client.producing.delivery import BatchResult, Outcome
from hmb.protocol.topics import TopicPartition
from hmb.records.builder import RecordsBuilder


class ProducerIdentity(NamedTuple):
    """The producer id and epoch that a broker has assigned."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class PartitionSequence:
    """The sequence numbers of one partition."""

    identity: ProducerIdentity  # the producer id and the epoch that the broker assigned
    epoch: int  # the epoch of this partition, which may be greater than the one in `identity`
    next: int = 0  # the sequence number of the next record


class BatchNumber(NamedTuple):
    """The numbers by which a broker recognizes a batch that arrives twice."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


@dataclass(slots=True, eq=False)
class SenderQueues:
    """The partition queues that one sender thread serves."""

    changed: threading.Condition  # a condition on the accumulator's lock; notified when a queue changes
    # The queues that are not empty, in the order of their arrival.
    queues: dict[PartitionQueue, None] = field(default_factory=dict)
    wakes_at: float = -math.inf  # time.monotonic() at which the waiting thread wakes; -inf while it does not wait


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """The batches of one partition that are not completed yet."""

    partition: TopicPartition
    sender_queues: SenderQueues
    batches: deque[ProducerBatch] = field(default_factory=deque)
    open: ProducerBatch | None = None  # the last batch, while it takes more records
    max_size: int = 1 << 31  # the size limit of a batch in bytes, lowered when the broker has rejected a larger batch
    sequence: PartitionSequence | None = None
    in_flight: int = 0  # the number of unanswered batches; they are the first in the queue unless the window is 0
    window: int = 1  # the limit for `in_flight`


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """Records of one partition that are sent together."""

    queue: PartitionQueue
    opened: float  # time.monotonic() when the first record was added
    result: BatchResult
    first: int = 0  # the number of the batch's first record in `result`; above 0 after a split
    records: RecordsBuilder = field(default_factory=RecordsBuilder)
    data: bytes | None = None  # the encoded batch; every attempt sends the same bytes
    number: BatchNumber | None = None
    attempts: int = 0
    uncertain_attempts: int = 0  # attempts after which the broker may have written the batch, or may still write it
    retry_at: float = 0.0  # time.monotonic() before which the batch is not sent again
    completed: bool = False  # whether the batch is delivered or has failed, and has left the queue

    @property
    def partition(self) -> TopicPartition:
        return self.queue.partition

    @property
    def size(self) -> int:
        """The bytes of memory that the batch takes in the queue."""
        return len(self.records.data) if self.data is None else len(self.data)

    def deliver(self, base_offset: int, log_append_time: int) -> None:
        """Report to the application that the broker has the records."""
        self.result.complete(self.first, Outcome(self.records.count, base_offset, log_append_time))

    def fail(self, error: Exception, record_errors: dict[int, str] | None = None) -> None:
        """Report to the application that the records were not delivered."""
        outcome = Outcome(self.records.count, error=error, record_errors=record_errors or {})
        self.result.complete(self.first, outcome)
