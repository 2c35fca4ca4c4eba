"""Records on their way: the queues of all partitions, between the threads that send and those that talk to brokers.

Sending records one by one costs a round trip each. The producer gathers them: `append` encodes a record into the open
batch of its partition, and the thread of the partition's leader takes whole batches from the front of the queues. A
batch may go when it is full, when it has waited for `linger`, or when somebody waits for it (`flush`, `result`, or a
thread that found the memory used up); then it is *sealed*: nothing is added any more.

The memory bound counts the encoded records, which is what is really held; records that do not fit wait their turn.

Records without a key may go to any partition. They stick to one as long as its batch is open, and the next batch goes
elsewhere (KIP-480): of two partitions drawn at random, to that with fewer batches waiting, so that a slow leader gets
less (what KIP-794 does with more bookkeeping).
"""

import math
import random
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, takewhile

from hmb.client.producing.batch import Batch, Lane, PartitionQueue
from hmb.client.producing.columns import Row
from hmb.client.producing.delivery import Delivery, Part, Receipt
from hmb.client.producing.metrics import Counters
from hmb.client.producing.record_checks import RECORD_OVERHEAD
from hmb.protocol.topics import TopicPartition
from hmb.records import RECORD_BATCH_OVERHEAD, Header


class Accumulator:
    """The queues of all partitions, bounded by `memory` bytes."""

    def __init__(self, batch_size: int, linger: float, memory: int, max_block: float) -> None:
        self._batch_size, self._linger, self._memory, self._max_block = batch_size, linger, memory, max_block
        self.counters = Counters()
        # Guards all below and what is in open batches; only those of counters and receipts are taken inside of it.
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)  # memory has come free
        self._queues: dict[str, dict[int, PartitionQueue]] = {}
        self._sticky: dict[str, PartitionQueue] = {}  # where records of a topic go that may go anywhere
        self._used = 0
        self._waiting: deque[object] = deque()  # threads that wait for memory, the first one first
        self._batches = 0
        self._closed = False
        self._lanes: list[Lane] = []
        self._let_go = self._hurry  # one for all batches: each object more costs the garbage collector its time
        self.unrouted = self.new_lane()  # the queues whose leader is not known (any more)

    def new_lane(self) -> Lane:
        lane = Lane(threading.Condition(self._lock))
        self._lanes.append(lane)
        return lane

    @property
    def used(self) -> int:
        """Bytes of records that are held."""
        return self._used

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
        """Queue a record of at most `size` bytes; TimeoutError if the memory is used up for too long.

        The partition is None if any of the topic's `partitions` will do.
        """
        with self._lock:
            batch = self._batch_with_room(topic, partition, partitions, size)
            records = batch.records
            before = len(records.data)
            records.append(timestamp, key, value, headers)
            self._used += len(records.data) - before
            return Delivery(batch.receipt, records.count - 1, timestamp)

    def append_rows(self, topic: str, partitions: int, rows: Sequence[Row], number: int, parts: list[Part]) -> None:
        """Queue records and add where they are to `parts`; the first one is `number` of those that are sent."""
        row_numbers: dict[Receipt, list[int]] = {}
        with self._lock:
            for row in rows:
                batch = self._batch_with_room(topic, row.partition, partitions, row.size)
                records = batch.records
                numbers = row_numbers.get(batch.receipt)
                if numbers is None:
                    numbers = row_numbers[batch.receipt] = []
                    parts.append(Part(batch.receipt, records.count, numbers))
                before = len(records.data)
                records.append(row.timestamp, row.key, row.value, row.headers)
                self._used += len(records.data) - before
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
        parts: list[Part],
    ) -> None:
        """The same for records that have nothing but a value."""
        ends = list(accumulate([RECORD_OVERHEAD + len(value) for value in values]))
        done = taken = 0
        while done < len(values):
            with self._lock:
                batch = self._batch_with_room(topic, partition, partitions, ends[done] - taken)
                room = min(self._limit(batch.queue) - batch.size, self._memory - self._used)
                end = max(done + 1, bisect_right(ends, taken + room))
                before, first = batch.size, batch.records.count
                batch.records.append_values(timestamp, values[done:end])
                self._used += batch.size - before
                parts.append(Part(batch.receipt, first, range(number + done, number + end)))
            done, taken = end, ends[end - 1]

    @property
    def finished(self) -> bool:
        """Whether it is closed and all has been delivered or given up."""
        return self._closed and not self._batches

    def topics(self) -> list[str]:
        """All topics to which something was ever sent."""
        with self._lock:
            return list(self._queues)

    def wait_for_batches(self, lane: Lane, timeout: float | None = None) -> list[Batch]:
        """Of each of the lane's queues the next batches that are due, sealed, as many as may be under way.

        Waits for some, until `finished` or the timeout.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with self._lock:
            while True:
                now = time.monotonic()
                due: list[Batch] = []
                wakes_at = deadline
                for queue in lane.queues:
                    wakes_at = min(wakes_at, self._take_due(queue, now, due))
                if due or self.finished or deadline <= now:
                    return due
                lane.wakes_at = wakes_at
                lane.changed.wait(None if wakes_at == math.inf else wakes_at - now)
                lane.wakes_at = -math.inf

    def encoded(self, batch: Batch, data: bytes) -> None:
        """A batch has got the form in which it is sent; perhaps it takes less memory now."""
        with self._lock:
            if not batch.settled:
                self._used += len(data) - batch.size
            batch.data, batch.records.data = data, bytearray()
            self._room.notify_all()

    def done(self, batch: Batch) -> None:
        """A batch was delivered or given up; its place and memory are free."""
        with self._lock:
            if batch.settled:
                return
            batch.settled = True
            queue = batch.queue
            queue.batches.remove(batch)  # it is one of the first
            if not queue.batches:
                queue.lane.queues.pop(queue)
            self._used -= batch.size
            batch.data, batch.records.data = b"", bytearray()
            self._batches -= 1
            self._room.notify_all()
            if self.finished:
                self._wake_all()

    def split(self, batch: Batch, halves: Sequence[Batch]) -> None:
        """Smaller batches take the place of one that was too large."""
        with self._lock:
            if batch.settled:
                return
            batch.settled = True
            batch.receipt.split()
            queue = batch.queue
            place = queue.batches.index(batch)
            queue.batches.remove(batch)
            for half in reversed(halves):
                queue.batches.insert(place, half)
            queue.max_size = max(half.size for half in halves) + RECORD_BATCH_OVERHEAD
            self._batches += len(halves) - 1
            self._used += sum(half.size for half in halves) - batch.size

    def sealed_before(self, moment: float, queue: PartitionQueue) -> list[Batch]:
        """The batches of a queue, from its front on, that were opened before, except one that still takes records."""
        with self._lock:
            return list(takewhile(lambda batch: batch.opened <= moment and batch is not queue.open, queue.batches))

    def is_in_front(self, batch: Batch) -> bool:
        """Whether no other of its queue is left that was sent before it."""
        with self._lock:
            return bool(batch.queue.batches) and batch.queue.batches[0] is batch

    def behind(self, batch: Batch) -> list[Batch]:
        """The batches behind one that have been sent already, in order."""
        with self._lock:
            its_queue = iter(batch.queue.batches)
            any(other is batch for other in its_queue)  # goes on behind it
            return list(takewhile(lambda other: other.number is not None, its_queue))

    def move(self, queue: PartitionQueue, lane: Lane) -> None:
        """Another thread shall send a partition's batches."""
        with self._lock:
            if queue.batches:
                del queue.lane.queues[queue]
                lane.queues[queue] = None
                lane.changed.notify()
            queue.lane = lane

    def seal(self) -> list[Receipt]:
        """Let all that is queued go at once; these are the receipts."""
        with self._lock:
            self._seal()
            return [batch.receipt for batch in self._all_batches()]

    def check_open(self) -> None:
        """ValueError if no more records are taken."""
        if self._closed:
            raise ValueError("the producer is closed")

    def close(self) -> None:
        """Take no more records."""
        with self._lock:
            self._closed = True
            self._seal()
            self._room.notify_all()

    def abandon(self, error: Exception) -> None:
        """Give up all that is queued or on its way, after `close`."""
        with self._lock:
            batches = self._all_batches()
            for queues in self._queues.values():
                for queue in queues.values():
                    queue.batches.clear()
                    queue.lane.queues.pop(queue, None)
            for batch in batches:
                batch.settled = True
            self._batches = self._used = 0
            self._wake_all()
        for batch in batches:
            batch.fail(error)

    def _batch_with_room(self, topic: str, partition: int | None, partitions: int, size: int) -> Batch:
        """The open batch into which so many bytes go, if need be a new one, when there is memory for them."""
        if self._used + size > self._memory or self._closed or self._waiting:
            self._wait_for_memory(size)
        queue = self._sticky.get(topic) if partition is None else self._queue(topic, partition)
        if queue is not None and queue.open is not None:
            batch = queue.open
            if len(batch.records.data) + size <= self._limit(queue):
                return batch
            self._close(batch)
        if partition is None:
            queue = self._sticky[topic] = self._choose(topic, partitions)
            if queue.open is not None:
                return self._batch_with_room(topic, queue.partition.partition, partitions, size)
        assert queue is not None
        return self._open(queue)

    def _limit(self, queue: PartitionQueue) -> int:
        """Bytes of records that a batch may have."""
        return min(self._batch_size, queue.max_size) - RECORD_BATCH_OVERHEAD

    def _open(self, queue: PartitionQueue) -> Batch:
        batch = Batch(queue, time.monotonic(), Receipt(queue.partition))
        batch.receipt.hurry = self._let_go
        # Without a call in between, so that Ctrl-C comes before or after: a batch here and not there never goes.
        queue.open = batch
        queue.lane.queues[queue] = None
        self._batches += 1
        queue.batches.append(batch)
        if batch.opened + self._linger < queue.lane.wakes_at:
            queue.lane.changed.notify()
        return batch

    def _close(self, batch: Batch) -> None:
        """Nothing more is added to it; if it is in front, it may go now."""
        batch.queue.open = None
        if batch.queue.batches[0] is batch:
            batch.queue.lane.changed.notify()

    def _queue(self, topic: str, partition: int) -> PartitionQueue:
        queues = self._queues.setdefault(topic, {})
        queue = queues.get(partition)
        if queue is None:
            queue = queues[partition] = PartitionQueue(TopicPartition(topic, partition), self.unrouted)
        return queue

    def _choose(self, topic: str, partitions: int) -> PartitionQueue:
        if partitions == 1:
            return self._queue(topic, 0)
        drawn = random.sample(range(partitions), min(2, partitions))
        return min([self._queue(topic, number) for number in drawn], key=lambda queue: len(queue.batches))

    def _take_due(self, queue: PartitionQueue, now: float, due: list[Batch]) -> float:
        """Seal the next batches that may go, and add them to `due`; otherwise, when the first one may go.

        One that still takes records waits until no other is under way: it may as well grow meanwhile.
        """
        taken = queue.under_way
        while taken < min(queue.window, len(queue.batches)):
            batch = queue.batches[taken]
            if queue.open is batch:
                if taken:
                    break
                due_at = batch.opened + self._linger
            else:
                due_at = batch.retry_at
            if due_at > now:
                return due_at
            if queue.open is batch:
                queue.open = None
            due.append(batch)
            taken += 1
        return math.inf

    def _hurry(self, receipt: Receipt) -> None:
        with self._lock:
            batch = self._queue(*receipt.partition).open
            if batch is not None and batch.receipt is receipt:
                self._close(batch)

    def _seal(self) -> None:
        for queues in self._queues.values():
            for queue in queues.values():
                queue.open = None
        self._wake_all()

    def _all_batches(self) -> list[Batch]:
        return [batch for queues in self._queues.values() for queue in queues.values() for batch in queue.batches]

    def _wake_all(self) -> None:
        for lane in self._lanes:
            lane.changed.notify_all()

    def _wait_for_memory(self, size: int) -> None:
        """In the order of coming, so that large records get their turn, too; all that waits goes at once meanwhile."""
        self._seal()
        ticket = object()
        self._waiting.append(ticket)
        started = time.monotonic()

        def is_free() -> bool:
            enough = not self._used or self._used + size <= self._memory
            return self._closed or (enough and self._waiting[0] is ticket)

        try:
            free = self._room.wait_for(is_free, self._max_block)
        finally:
            self._waiting.remove(ticket)
            self._room.notify_all()  # the next one
            self.counters.waited(time.monotonic() - started)
        self.check_open()
        if not free:
            what = f"records wait for the broker in {self._used:,} of {self._memory:,} bytes (buffer_memory)"
            raise TimeoutError(f"{what}, and in {self._max_block:g} s there was no room for {size:,} more")
