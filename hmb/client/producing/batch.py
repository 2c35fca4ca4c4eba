"""The batches of a producer, and the queues in which batches wait for a sender thread.

The broker must write the records of one partition in the order in which the application has sent them. The producer
therefore has one queue of batches for each partition. A sender thread sends the batches from the front of the queue. A
batch stays in the queue until it is delivered or has failed.

A batch is *in flight* from the moment when the producer sends it until its response arrives. The *window* of
a partition is the largest number of its batches that may be in flight at the same time. The window changes as
follows:
1. At the start, the window is 1.
2. When the broker has written a batch, the window becomes `max_in_flight`, by default 5.
3. When a batch fails, the window becomes 0, so the sender thread sends no batch of the partition.
4. When no batch is in flight any more, the window becomes 1. The thread gives up each failed batch, splits it
   or sends it again. The module `idempotence` explains when the window becomes `max_in_flight` again.

The *owner* of a partition's queue is the only thread that handles the batches in the queue. While the producer
does not know the partition's leader, the owner is the router thread (`LeaderRouter` in sender.py). The router
looks up the leader, and moves the queue to the sender thread of this leader. This thread is then the owner, and
sends the batches. After an error, the partition may have a new leader. The sender thread can then move the
queue back to the router.

The accumulator's lock guards each field of a queue that application threads also use, such as the list of
batches. Fields that only the queue's owner uses need no lock, for example the number of batches in flight.

Source: Kafka's `ProducerBatch`, and the queues in `RecordAccumulator`.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass, field

from hmb.client.producing.delivery import BatchResult, Outcome
from hmb.protocol.enums import INT32_MAX
from hmb.protocol.topics import TopicPartition
from hmb.records.builder import RecordsBuilder
from hmb.records.producer_numbers import BatchNumbers, ProducerIdAndEpoch


@dataclass(slots=True)
class PartitionSequence:
    """The sequence numbers of one partition: `next` is the sequence number of the next record."""

    producer: ProducerIdAndEpoch  # the producer id and the epoch that the broker assigned
    epoch: int  # the epoch for this partition; it can be greater than the epoch in `producer`
    next: int = 0  # the sequence number of the next record


@dataclass(slots=True, eq=False)
class SenderQueues:
    """The queues from which one sender thread takes batches. The accumulator's lock guards all fields."""

    changed: threading.Condition  # the sender thread waits on this condition, which uses the accumulator's lock
    # The queues of this sender thread that contain batches. The queue that was added first comes first. Only the keys
    # of this dict are used.
    queues: dict[PartitionQueue, None] = field(default_factory=dict)
    wakes_at: float = -math.inf  # the time (time.monotonic()) at which the sender thread wakes; -inf while it runs


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """The queue of one partition. It contains the batches that are neither delivered nor failed yet.

    - `open` is the batch to which records can still be added, or None. It is the last batch in `batches`, and is
      never in flight.
    - `in_flight` is the number of batches in flight. `window` is the largest allowed value of `in_flight`. For
      example, if `window` is 5 and `in_flight` is 3, the first 3 batches in `batches` are in flight.
    - After a batch has failed, `window` is 0 until no batch is in flight. During this time, no other batch of the
      queue is sent. The failed batch stays in `batches`, but is not in flight.
    - Only one thread sends the batches of a queue. This thread is the *owner* of the queue. If the leader of the
      partition is unknown, the owner looks up the leader.
    - `sender_queues` contains all queues of the same owner, except queues without batches.

    Several threads use `sender_queues`, `batches`, `open` and `max_size`, so the accumulator's lock guards these
    fields. Only the owner uses `sequence`, `in_flight` and `window`, so these fields need no lock.
    """

    partition: TopicPartition
    sender_queues: SenderQueues
    batches: deque[ProducerBatch] = field(default_factory=deque)
    open: ProducerBatch | None = None  # the batch to which records can still be added
    max_size: int = INT32_MAX  # the largest batch size (bytes); it decreases if the broker rejects a batch as too large
    sequence: PartitionSequence | None = None
    in_flight: int = 0  # the number of batches in flight
    window: int = 1  # the largest allowed value of `in_flight`

    def take_due(self, now: float, linger: float, due: list[ProducerBatch]) -> float:
        """Put all batches that can be sent now into the list `due`. The caller holds the accumulator's lock.

        The newest batch of the queue can be *open*: it still accepts records. While the queue contains older batches,
        the method does not take the open batch, so that this batch collects further records. After the method has taken
        the open batch, this batch accepts no more records.

        Return the time (`time.monotonic()`) at which the next batch can be sent. Return infinity if no time is known,
        for example because the producer must first receive a response.
        """
        taken = self.in_flight
        while taken < min(self.window, len(self.batches)):
            batch = self.batches[taken]
            if self.open is batch:
                if taken:
                    break
                due_at = batch.opened + linger
            else:
                due_at = batch.retry_at
            if due_at > now:
                return due_at
            if self.open is batch:
                self.open = None
            due.append(batch)
            taken += 1
        return math.inf


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """The records of one partition that the producer sends together, as one batch.

    While the batch accepts records, a thread must hold the accumulator's lock to change `records`. Later, only the
    thread that handles the batches of `queue` changes the batch. This thread needs no lock, except for `completed`.

    Each thread must hold the accumulator's lock to set `completed`, because `Accumulator.abandon` can set this
    field in another thread.

    A thread may read `completed` without the lock, but the value can become True directly afterwards. So
    `Accumulator.done` and `Accumulator.split` take the lock and read `completed` again before they change the queue.
    """

    queue: PartitionQueue
    opened: float  # the time at which the first record was added (time.monotonic())
    result: BatchResult
    first: int = 0  # the index of this batch's first record among the records of `result`; above 0 only after a split
    records: RecordsBuilder = field(default_factory=RecordsBuilder)
    data: bytes | None = None  # the encoded batch; every attempt sends the same bytes
    numbers: BatchNumbers | None = None  # None until they are assigned
    attempts: int = 0
    uncertain_attempts: int = 0  # the number of attempts that may have written the batch, or may still write it
    retry_at: float = 0.0  # the earliest time of the next attempt (time.monotonic())
    completed: bool = False  # whether the batch is delivered or has failed

    @property
    def partition(self) -> TopicPartition:
        return self.queue.partition

    @property
    def size(self) -> int:
        """The size of the batch in memory, in bytes."""
        return len(self.records.data) if self.data is None else len(self.data)

    def deliver(self, base_offset: int, log_append_time: int) -> None:
        """Report to the application that the broker has written the records of this batch."""
        self.result.complete(self.first, Outcome(self.records.count, base_offset, log_append_time))

    def fail(self, error: Exception, record_errors: dict[int, str] | None = None) -> None:
        """Report to the application that the records of this batch were not delivered."""
        outcome = Outcome(self.records.count, error=error, record_errors=record_errors or {})
        self.result.complete(self.first, outcome)
