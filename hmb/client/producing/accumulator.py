"""The accumulator: it collects records in batches, and keeps one queue of batches for each partition.

If the producer sent each record in its own request, each record would cost a network round trip. The producer therefore
collects records in batches. An application thread calls `append`, which adds the record to the last batch of a queue. A
sender thread sends the first batches of the queues.

A sender thread sends a batch when the batch is *due*. A batch becomes due in three cases:
- The batch is full.
- An application thread is waiting for the result of this batch, for all batches (`flush` or `close`), or for
  free memory.
- The first record of the batch has waited for `linger` seconds, and no earlier batch of the partition is in
  flight.

Before a sender thread sends a batch, the accumulator *seals* the batch: a sealed batch gets no further record.

The setting `buffer_memory` limits the bytes of the encoded records in all queues. If no memory is left for a record,
the thread that calls `send` waits until other batches are completed (module `memory`).

If a record has no key and no partition, the module `queues` chooses its partition.

For example, an application sends 1,000 records of 100 bytes within 5 ms to a topic with one partition. These records
make one batch of about 110 kB, and the producer sends one request.

Source: Kafka's `RecordAccumulator`.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, takewhile

from hmb.client.producing.batch import PartitionQueue, ProducerBatch, SenderQueues
from hmb.client.producing.columns import Row
from hmb.client.producing.delivery import BatchResult, BatchSlice, Delivery
from hmb.client.producing.memory import BufferMemory
from hmb.client.producing.metrics import Counters
from hmb.client.producing.queues import PartitionQueues
from hmb.client.producing.record_checks import ESTIMATED_OVERHEAD
from hmb.defaults import LONGEST_WAIT
from hmb.records import RECORD_BATCH_OVERHEAD, Header


class Accumulator:
    """The queues of all partitions. Each queue contains batches of records for one partition.

    - `used` is the size of all records in the queues, in bytes. If a new record would make `used` greater than
      `memory`, the thread that adds the record waits. While all queues are empty, a record of any size is accepted.
    - `_batches` is the number of batches in all queues.
    - If a queue contains batches, it is in the `SenderQueues` of the thread that sends to the partition's leader.
      While the leader is unknown, the queue is in `without_leader`.
    - New records go only to the last batch of a queue. Batches at the front of a queue can be in flight.
    - A batch leaves its queue when it is delivered or has failed. It never returns to a queue.
    """

    def __init__(self, batch_size: int, linger: float, memory: int, max_block: float) -> None:
        self._batch_size, self._linger = batch_size, linger
        self.counters = Counters()
        # `_lock` guards all changes of the fields below and of batches that still receive records. A thread that holds
        # `_lock` may also take the lock of `Counters` or of a `BatchResult`.
        #
        # `used`, `check_open` and `finished` read fields without `_lock`. A slightly outdated `used` does no harm. A
        # closed producer stays closed and gets no new batches, so `check_open` and `finished` are also safe.
        self._lock = threading.Lock()
        self._memory = BufferMemory(self._lock, memory, max_block)
        self._batches = 0
        self._closed = False
        self._all_sender_queues: list[SenderQueues] = []
        # Python creates a new method object at each read of `self._seal_batch_of`. All batches share the object in
        # `_seal_now`, so the garbage collector has fewer objects to visit.
        self._seal_now = self._seal_batch_of
        self.without_leader = self.new_sender_queues()  # the queues of partitions whose leader is not known
        self._queues = PartitionQueues(self.without_leader)

    @property
    def used(self) -> int:
        """The number of bytes that all records in the queues take."""
        return self._memory.used

    def new_sender_queues(self) -> SenderQueues:
        """Return an empty set of queues for a sender thread."""
        sender_queues = SenderQueues(threading.Condition(self._lock))
        with self._lock:
            self._all_sender_queues.append(sender_queues)
        return sender_queues

    def append(
        self,
        topic: str,
        partition: int | None,
        partitions: int,
        size: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
    ) -> Delivery:
        """Add a record to the last batch of its partition. The encoded record takes about `size` bytes.

        If `partition` is None, the accumulator chooses the partition. `partitions` is the number of the topic's
        partitions. Raises TimeoutError if the record does not fit into the memory within `max_block` seconds.
        """
        with self._lock:
            batch = self._batch_with_room(topic, partition, partitions, size)
            records = batch.records
            before = len(records.data)
            records.append(timestamp, key, value, headers)
            self._memory.free -= len(records.data) - before
            return Delivery(batch.result, records.count - 1, timestamp)

    def append_rows(
        self, topic: str, partitions: int, rows: Sequence[Row], number: int, slices: list[BatchSlice]
    ) -> None:
        """Add several records of a `send_many` call to the last batches of their partitions.

        The list `rows` contains consecutive records of the call, and `number` is the index of the first record. For
        example, if `rows` contains the records 500 to 999 of the call, `number` is 500.

        The records can go to several batches. For each batch, the method appends a `BatchSlice` with the indexes of the
        batch's records to the list `slices`.
        """
        row_numbers: dict[BatchResult, list[int]] = {}
        with self._lock:
            for row in rows:
                batch = self._batch_with_room(topic, row.partition, partitions, row.size)
                records = batch.records
                numbers = row_numbers.get(batch.result)
                if numbers is None:
                    numbers = row_numbers[batch.result] = []
                    slices.append(BatchSlice(batch.result, records.count, numbers))
                before = len(records.data)
                records.append(row.timestamp, row.key, row.value, row.headers)
                self._memory.free -= len(records.data) - before
                numbers.append(number)
                number += 1

    def append_values(
        self,
        topic: str,
        partition: int | None,
        partitions: int,
        timestamp: int,
        values: Sequence[bytes],
        number: int,
        slices: list[BatchSlice],
    ) -> None:
        """Add records that have only a value: no key, no headers, no timestamp of their own.

        All records get the timestamp `timestamp`. `number` and `slices` have the same meaning as in `append_rows`.
        """
        ends = list(accumulate([ESTIMATED_OVERHEAD + len(value) for value in values]))
        done = taken = 0
        while done < len(values):
            with self._lock:
                batch = self._batch_with_room(topic, partition, partitions, ends[done] - taken)
                room = min(self._limit(batch.queue) - batch.size, self._memory.free)
                end = max(done + 1, bisect_right(ends, taken + room))
                before, first = batch.size, batch.records.count
                batch.records.append_values(timestamp, values[done:end])
                self._memory.free -= batch.size - before
                slices.append(BatchSlice(batch.result, first, range(number + done, number + end)))
            done, taken = end, ends[end - 1]

    @property
    def finished(self) -> bool:
        """True if the producer is closed, and each batch is delivered or has failed."""
        return self._closed and not self._batches

    def topics(self) -> list[str]:
        """Return all topics to which the producer has ever sent records."""
        with self._lock:
            return self._queues.topics()

    def wait_for_batches(self, sender_queues: SenderQueues, timeout: float | None = None) -> list[ProducerBatch]:
        """Wait until batches in `sender_queues` can be sent, and return these batches.

        The returned batches are sealed: they accept no further records. Each queue has a *window*: the maximum number
        of its batches in flight. The method returns only as many batches as the window allows.

        The method returns an empty list in two cases:

        - No batch can be sent within `timeout` seconds.
        - The producer is closed, and each of its batches is delivered or has failed.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with self._lock:
            while True:
                now = time.monotonic()
                due: list[ProducerBatch] = []
                wakes_at = deadline
                for queue in sender_queues.queues:
                    wakes_at = min(wakes_at, queue.take_due(now, self._linger, due))
                if due or self.finished or deadline <= now:
                    return due
                sender_queues.wakes_at = wakes_at
                sender_queues.changed.wait(min(wakes_at - now, LONGEST_WAIT))
                sender_queues.wakes_at = -math.inf

    def encoded(self, batch: ProducerBatch, data: bytes) -> None:
        """Store the encoded bytes of a batch instead of its records, and add the batch to the metrics.

        A compressed batch takes less memory than its records, so the method also frees memory.
        """
        self.counters.encoded(batch.records.count, batch.size, len(data))
        with self._lock:
            if not batch.completed:
                self._memory.release(batch.size - len(data))
            batch.data, batch.records.data = data, bytearray()

    def done(self, batch: ProducerBatch) -> None:
        """Remove a completed batch from its queue, and free the memory of the batch."""
        with self._lock:
            if batch.completed:
                return
            batch.completed = True
            queue = batch.queue
            queue.batches.remove(batch)  # This call is fast, because the batch is near the front of the queue.
            if not queue.batches:
                queue.sender_queues.queues.pop(queue)
            self._memory.release(batch.size)
            batch.data, batch.records.data = b"", bytearray()
            self._batches -= 1
            if self.finished:
                self._wake_all()

    def split(self, batch: ProducerBatch, halves: Sequence[ProducerBatch]) -> None:
        """Replace a batch in its queue by the two halves of the batch."""
        with self._lock:
            if batch.completed:
                return
            batch.completed = True
            batch.result.split()
            queue = batch.queue
            position = queue.batches.index(batch)
            queue.batches.remove(batch)
            for half in reversed(halves):
                queue.batches.insert(position, half)
            queue.max_size = max(half.size for half in halves) + RECORD_BATCH_OVERHEAD
            self._batches += len(halves) - 1
            self._memory.release(batch.size - sum(half.size for half in halves))

    def sealed_before(self, moment: float, queue: PartitionQueue) -> list[ProducerBatch]:
        """Return the sealed batches of `queue` that got their first record at or before `moment`.

        A sealed batch gets no more records. The result therefore does not contain the open batch.
        """
        with self._lock:
            return list(takewhile(lambda batch: batch.opened <= moment and batch is not queue.open, queue.batches))

    def is_first(self, batch: ProducerBatch) -> bool:
        """Return whether this batch is the first one in its queue."""
        with self._lock:
            return bool(batch.queue.batches) and batch.queue.batches[0] is batch

    def batches_after(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Return the batches that were sent after `batch` and are still in the queue of the partition."""
        with self._lock:
            batches = iter(batch.queue.batches)
            any(other is batch for other in batches)  # moves the iterator to the position after the batch
            return list(takewhile(lambda other: other.numbers is not None, batches))

    def move(self, queue: PartitionQueue, sender_queues: SenderQueues) -> None:
        """Move the queue of a partition to another sender thread. After the move, the new thread sends the batches."""
        with self._lock:
            if queue.batches:
                del queue.sender_queues.queues[queue]
                sender_queues.queues[queue] = None
                sender_queues.changed.notify()
            queue.sender_queues = sender_queues

    def seal(self) -> list[BatchResult]:
        """Let the sender threads send all batches now. Return a future result (`BatchResult`) for each batch."""
        with self._lock:
            self._seal_all()
            return [batch.result for batch in self._queues.batches()]

    def check_open(self) -> None:
        """Raise RuntimeError if the producer is closed."""
        if self._closed:
            raise RuntimeError("the producer is closed")

    def close(self) -> None:
        """Accept no further record. Seal all batches, so that the sender threads send them now."""
        with self._lock:
            self._closed = True
            self._seal_all()
            self._memory.release(0)

    def abandon(self, error: Exception) -> None:
        """Give up all remaining batches, and report `error` for their records. The caller must have called `close`."""
        with self._lock:
            batches = self._queues.batches()
            for queue in self._queues:
                queue.batches.clear()
                queue.sender_queues.queues.pop(queue, None)
            for batch in batches:
                batch.completed = True
            self._batches = 0
            self._memory.release_all()
            self._wake_all()
        for batch in batches:
            batch.fail(error)

    def _batch_with_room(self, topic: str, partition: int | None, partitions: int, size: int) -> ProducerBatch:
        """Wait until enough memory is free. Return a batch to which a record of `size` bytes can be added."""
        memory = self._memory
        if size > memory.free or memory.waiting or self._closed:
            self._wait_for_memory(size)
        queue = self._queues.sticky.get(topic) if partition is None else self._queues.of(topic, partition)
        if queue is not None and queue.open is not None:
            batch = queue.open
            if len(batch.records.data) + size <= self._limit(queue):
                return batch
            self._seal_batch(batch)
        if partition is None:
            queue = self._queues.choose(topic, partitions)
            if queue.open is not None:
                return self._batch_with_room(topic, queue.partition.partition, partitions, size)
        assert queue is not None
        return self._open(queue)

    def _limit(self, queue: PartitionQueue) -> int:
        """Return the largest number of bytes that the records of one batch in this queue may take together."""
        return min(self._batch_size, queue.max_size) - RECORD_BATCH_OVERHEAD

    def _open(self, queue: PartitionQueue) -> ProducerBatch:
        batch = ProducerBatch(queue, time.monotonic(), BatchResult(queue.partition))
        batch.result.send_now = self._seal_now
        # The next four lines must run together, so that `_batches` counts only batches in a queue. Ctrl-C cannot
        # interrupt the lines: Python handles Ctrl-C only when a function begins, a loop repeats, or a call returns. The
        # only call (`append`) is in the last line.
        queue.open = batch
        queue.sender_queues.queues[queue] = None
        self._batches += 1
        queue.batches.append(batch)
        if batch.opened + self._linger < queue.sender_queues.wakes_at:
            queue.sender_queues.changed.notify()
        return batch

    def _seal_batch(self, batch: ProducerBatch) -> None:
        """Seal a batch: it gets no further record. If the batch is the first in its queue, wake the sender thread."""
        batch.queue.open = None
        if batch.queue.batches[0] is batch:
            batch.queue.sender_queues.changed.notify()

    def _seal_batch_of(self, result: BatchResult) -> None:
        with self._lock:
            batch = self._queues.of(*result.partition).open
            if batch is not None and batch.result is result:
                self._seal_batch(batch)

    def _seal_all(self) -> None:
        for queue in self._queues:
            queue.open = None
        self._wake_all()

    def _wake_all(self) -> None:
        for sender_queues in self._all_sender_queues:
            sender_queues.changed.notify_all()

    def _wait_for_memory(self, size: int) -> None:
        """Seal all batches, so that the sender threads send them now. Wait until `size` bytes of memory are free."""
        self._seal_all()
        started = time.monotonic()
        try:
            self._memory.wait(size, lambda: self._closed)
        finally:
            self.counters.waited(time.monotonic() - started)
        self.check_open()
