"""A producer's batch, the queue it stands in, and the lane its queue belongs to.

Records of one partition go in the order of their sending, so each partition has a queue of batches. They are sent from
its front, and stay there until they are delivered or given up. While the broker works on one batch the next ones can be
on their way to it already: so many as the queue's *window* allows are under way at a time.

    1                at first, and again after a refusal, until all that were sent are settled
    `max_in_flight`  once the broker has taken one, and nothing is left of what was sent before
    0                after a refusal, until the batches that were sent behind the refused one are answered, too

So whoever decides what becomes of a refused batch knows what became of those behind it, and has nothing under way.

A lane is all that goes through one thread: the queues of the partitions of one leader. The thread of a lane alone sends
from its queues and moves them on to another lane, so what it knows of the batches under way needs no lock.
"""

import math
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.client.producing.delivery import Outcome, Receipt
from hmb.protocol.topics import TopicPartition
from hmb.records.builder import RecordsBuilder


class Identity(NamedTuple):
    """What the broker gave an idempotent producer."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Sequence:
    """How far the records of a partition are numbered."""

    identity: Identity  # as the broker gave it
    epoch: int  # this partition's may be further on
    next: int = 0


class Number(NamedTuple):
    """Of a batch: what makes it the same batch when it comes twice."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


@dataclass(slots=True, eq=False)
class Lane:
    """The queues that go through one thread."""

    changed: threading.Condition  # on the accumulator's lock
    queues: dict["PartitionQueue", None] = field(default_factory=dict)  # those that are not empty, in order
    wakes_at: float = -math.inf  # time.monotonic(), when its thread waits; else it needs not be woken


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """The batches of a partition on their way."""

    partition: TopicPartition
    lane: Lane
    batches: deque["Batch"] = field(default_factory=deque)
    open: "Batch | None" = None  # the last one, while it takes more records
    max_size: int = 1 << 31  # of a batch, once the broker has refused a larger one
    sequence: Sequence | None = None
    under_way: int = 0  # how many batches are sent and not answered; unless the window is 0, the first ones
    window: int = 1  # how many may be


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that go together."""

    queue: PartitionQueue
    opened: float  # time.monotonic()
    receipt: Receipt
    first: int = 0  # its first record's number in the receipt
    records: RecordsBuilder = field(default_factory=RecordsBuilder)
    data: bytes | None = None  # what is sent; the same bytes at every try
    number: Number | None = None
    tries: int = 0
    unresolved: int = 0  # tries after which the broker may have written it, or may write it still
    retry_at: float = 0.0  # time.monotonic(): not before
    settled: bool = False  # delivered or given up, and out of the queue

    @property
    def partition(self) -> TopicPartition:
        return self.queue.partition

    @property
    def size(self) -> int:
        """Bytes of memory that it takes while it waits."""
        return len(self.records.data) if self.data is None else len(self.data)

    def deliver(self, base_offset: int, log_append_time: int) -> None:
        """The broker has it: tell everyone who waits."""
        self.receipt.settle(self.first, Outcome(self.records.count, base_offset, log_append_time))

    def fail(self, error: Exception, guilty: dict[int, str] | None = None) -> None:
        """The broker will not have it: tell everyone who waits."""
        self.receipt.settle(self.first, Outcome(self.records.count, error=error, guilty=guilty or {}))
