"""Records on their way: one queue of batches per partition, between the threads that send and the one that talks.

Sending records one by one costs a round trip each. The producer gathers them: `append` puts a record into the last
batch of its partition's queue, and the sender takes whole batches from the front. A batch may go when it is full,
when it has waited for `linger`, or when somebody waits for it (`flush`, or a thread that found the memory used up);
then it is *sealed*: nothing is added any more, and every try sends the same bytes.

The front batch stays in its queue until it is delivered or given up, and only front batches are sent. So there is one
batch of a partition under way at a time, and a retry can never be overtaken: order costs no bookkeeping.
"""

import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.client.metadata import TopicPartition
from hmb.records.record import Record

RECORD_COST = 1400  # bytes of memory for a record's objects, most of them its future's, beside key and value


class RecordMetadata(NamedTuple):
    """Where a record went; the offset is -1 when the broker did not say (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class Delivery(Future[RecordMetadata]):
    """Where a record went, once that is known; what is on its way cannot be taken back."""

    def cancel(self) -> bool:
        return False


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that go together, and who waits for each of them."""

    partition: TopicPartition
    opened: float  # time.monotonic()
    size: int = 0  # bytes, about
    records: list[Record] = field(default_factory=list)
    futures: list[Delivery] = field(default_factory=list)
    sealed: bool = False
    data: bytes | None = None  # what is sent, once that is settled
    numbered: bool = False  # the data has a producer id and a sequence number
    retry_at: float = 0.0  # time.monotonic(): not before
    settled: bool = False  # delivered or given up

    def deliver(self, offset: int, log_append_time: int) -> None:
        """The broker has it: tell everyone who waits."""
        self.settled = True
        topic, partition = self.partition
        for index, (record, future) in enumerate(zip(self.records, self.futures, strict=True)):
            timestamp = record.timestamp if log_append_time < 0 else log_append_time
            future.set_result(RecordMetadata(topic, partition, offset + index if offset >= 0 else -1, timestamp))

    def fail(self, error: Exception) -> None:
        """The broker will not have it: tell everyone who waits."""
        self.settled = True
        for future in self.futures:
            future.set_exception(error)


class Accumulator:
    """The queues of all partitions, bounded by `memory` bytes."""

    def __init__(self, batch_size: int, linger: float, memory: int) -> None:
        self._batch_size, self._linger, self._memory = batch_size, linger, memory
        self._queues: dict[TopicPartition, deque[Batch]] = {}
        self._used = 0
        self._closed = False
        # Guards all of the above and what is in unsealed batches; no other lock is taken under it.
        self._changed = threading.Condition()

    def append(self, partition: TopicPartition, record: Record, size: int, timeout: float) -> Delivery:
        """Queue a record; waits while the memory is used up, at most `timeout` seconds (then TimeoutError)."""
        future = Delivery()
        with self._changed:
            cost = size + RECORD_COST
            if self._used and self._used + cost > self._memory:
                self._wait_for_memory(cost, timeout)
            if self._closed:
                raise ValueError("the producer is closed")
            queue = self._queues.setdefault(partition, deque())
            if not queue or queue[-1].sealed or queue[-1].size + size > self._batch_size:
                queue.append(Batch(partition, time.monotonic()))
                self._changed.notify_all()  # a new batch: the one before it is full, or the linger starts
            batch = queue[-1]
            batch.records.append(record)
            batch.futures.append(future)
            batch.size += size
            self._used += cost
        return future

    def wait_for_batches(self) -> list[Batch]:
        """The front batches that are due, sealed; waits until there are some. None left and closed: an empty list."""
        with self._changed:
            while True:
                now = time.monotonic()
                waits = {queue[0]: self._wait(queue, now) for queue in self._queues.values()}
                due = [batch for batch, wait in waits.items() if wait <= 0]
                for batch in due:
                    batch.sealed = True
                if due or (self._closed and not self._queues):
                    return due
                self._changed.wait(min(waits.values(), default=None))

    def done(self, batch: Batch) -> None:
        """A front batch was delivered or given up; its place and memory are free."""
        with self._changed:
            queue = self._queues[batch.partition]
            queue.popleft()
            if not queue:
                del self._queues[batch.partition]
            self._used -= batch.size + len(batch.records) * RECORD_COST
            self._changed.notify_all()

    def seal(self) -> list[Batch]:
        """Let all that is queued go at once; these are the batches."""
        with self._changed:
            return self._seal()

    def close(self) -> None:
        """Take no more records."""
        with self._changed:
            self._closed = True
            self._seal()

    def _seal(self) -> list[Batch]:
        batches = [batch for queue in self._queues.values() for batch in queue]
        for batch in batches:
            batch.sealed = True
        self._changed.notify_all()
        return batches

    def _wait(self, queue: deque[Batch], now: float) -> float:
        """How long the front batch has to wait still."""
        batch = queue[0]
        if batch.sealed or len(queue) > 1 or batch.size >= self._batch_size:
            return batch.retry_at - now
        return batch.opened + self._linger - now

    def _wait_for_memory(self, cost: int, timeout: float) -> None:
        self._seal()
        if not self._changed.wait_for(lambda: not self._used or self._used + cost <= self._memory, timeout):
            raise TimeoutError(f"records wait for the broker in {self._used} bytes, and in {timeout:g} s none went")
