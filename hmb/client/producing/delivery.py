"""What became of a record: `send` gives a `Delivery` at once, and it tells later.

    producer.send("weather", b"rain").result()            wait for it
    producer.send("weather", b"rain", on_delivery=print)  or be called

Records go in batches and are answered in batches, so all that can be known of a record stands in the *receipt* of its
batch, and a delivery is no more than the receipt and a number in it. One `concurrent.futures.Future` per record, with a
lock and a list of callbacks each, would cost 2 us and 1400 bytes; a delivery costs 0.3 us and 56 bytes, and nothing at
all once its owner lets go of it, for nobody else holds it unless it has a callback.

The names are those of `Future`. What is on its way cannot be taken back, so there is no `cancel`.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

log = logging.getLogger(__name__)
T = TypeVar("T")


class RecordMetadata(NamedTuple):
    """Where a record went; the offset is -1 when the broker did not say (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class Outcome(NamedTuple):
    """What became of the records of one batch."""

    records: int
    base_offset: int = -1
    log_append_time: int = -1  # ms; -1: the records keep their own
    error: Exception | None = None
    guilty: Mapping[int, str] = {}  # the records for which the broker refused them all, and what it says of them


class Receipt:
    """Of a batch, or of the batches into which it had to be split."""

    __slots__ = ("_callbacks", "_changed", "_lock", "_missing", "_outcomes", "finished", "hurry", "partition")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.finished = False  # all callbacks have run
        self.hurry: Callable[[Receipt], None] | None = None  # lets its batch go at once, for somebody waits
        self._missing = 1  # parts whose outcome is not known
        self._outcomes: dict[int, Outcome] = {}  # first record of a part -> what became of it
        self._callbacks: list[tuple[Callable[[Any], object], object]] = []  # and what they are called with
        self._lock = threading.Lock()  # guards the above
        self._changed: threading.Condition | None = None  # on that lock, once somebody waits; most have nobody

    @property
    def settled(self) -> bool:
        return not self._missing

    def split(self) -> None:
        """One part became two."""
        with self._lock:
            self._missing += 1

    def settle(self, first: int, outcome: Outcome) -> None:
        """The outcome of a part, the first one counts; after the last part, all who wait and all callbacks are told."""
        with self._lock:
            if first in self._outcomes:
                return
            self._outcomes[first] = outcome
            self._missing -= 1
            if self._missing:
                return
            self.hurry = None
            callbacks, self._callbacks = self._callbacks, []
            self._wake_all()
        for callback, argument in callbacks:
            _call(callback, argument, BaseException)  # sys.exit() too: this is not the program's thread
        with self._lock:
            self.finished = True
            self._wake_all()

    def add_callback(self, callback: Callable[[T], object], argument: T) -> None:
        """Call it with the argument when all is settled, which may be now."""
        with self._lock:
            if self._missing:
                self._callbacks.append((callback, argument))
                return
        _call(callback, argument)

    def wait(self, timeout: float | None) -> bool:
        """Until the outcome is known; the batch goes at once, without linger. False: it is not."""
        hurry = self.hurry
        if hurry is not None:
            hurry(self)
        return self._wait_for(lambda: not self._missing, timeout)

    def wait_until_finished(self, timeout: float) -> bool:
        """Until all callbacks have run, too."""
        return self.finished or self._wait_for(lambda: self.finished, timeout)

    def _wait_for(self, predicate: Callable[[], bool], timeout: float | None) -> bool:
        with self._lock:
            if self._changed is None:
                self._changed = threading.Condition(self._lock)
            return self._changed.wait_for(predicate, timeout)

    def _wake_all(self) -> None:
        """Call it with the lock."""
        if self._changed is not None:
            self._changed.notify_all()

    def part_of(self, index: int) -> tuple[int, Outcome]:
        """What became of a record, and the number of the first one of its part."""
        first = max(it for it in self._outcomes if it <= index)
        return first, self._outcomes[first]

    def error_of(self, index: int) -> Exception | None:
        """The error of a record, which names the record that is to blame if the broker did."""
        first, outcome = self.part_of(index)
        if not outcome.guilty or not isinstance(outcome.error, KafkaError):
            return outcome.error
        own = outcome.guilty.get(index - first)
        if own is not None:
            return KafkaError(outcome.error.code, f"{self.partition}: {own}")
        number, why = next(iter(outcome.guilty.items()))
        what = (
            f"{self.partition}: refused together with record {number + 1} of the {outcome.records} in its batch: {why}"
        )
        return KafkaError(outcome.error.code, what)


def _call(callback: Callable[[T], object], argument: T, mistakes: type[BaseException] = Exception) -> None:
    """A callback's mistake must not keep others from hearing of their records."""
    try:
        callback(argument)
    except mistakes:
        log.exception("a delivery's callback failed")


class Delivery:
    """Where a record went, once that is known."""

    __slots__ = ("_index", "_receipt", "_timestamp")

    def __init__(self, receipt: Receipt, index: int, timestamp: int) -> None:
        self._receipt, self._index, self._timestamp = receipt, index, timestamp

    def done(self) -> bool:
        """Whether it is delivered or given up."""
        return self._receipt.settled

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for it; raises the error if it was not delivered, TimeoutError if `timeout` seconds were not enough."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        first, outcome = self._receipt.part_of(self._index)
        offset = -1 if outcome.base_offset < 0 else outcome.base_offset + self._index - first
        timestamp = self._timestamp if outcome.log_append_time < 0 else outcome.log_append_time
        return RecordMetadata(*self._receipt.partition, offset, timestamp)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait for it; the error if it was not delivered."""
        _wait(self._receipt, timeout)
        return self._receipt.error_of(self._index)

    def add_done_callback(self, callback: Callable[["Delivery"], object]) -> None:
        """Call it with this delivery when that is done: now, or later in the producer's thread.

        That thread goes on when the call returns, so a callback must not wait for other records; it may send some.
        """
        self._receipt.add_callback(callback, self)


class Range(NamedTuple):
    """Records of one `send_many` that went to one place."""

    topic: str
    partition: int
    base_offset: int  # -1: the broker did not say
    records: int


class Failure(NamedTuple):
    """Records of one `send_many` that were not delivered, for one reason."""

    rows: Sequence[int]  # their numbers among the values
    guilty: int  # of them, the one to blame if the broker named one, else the first
    error: Exception
    is_collateral: bool = False  # the one to blame is of another `send_many`, and only shared their batch


class Part(NamedTuple):
    """Records of one `send_many` in one batch."""

    receipt: Receipt
    first: int  # number in the batch
    rows: Sequence[int]  # their numbers among the values


class Deliveries:
    """Where the records of a `send_many` went, once that is known."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def done(self) -> bool:
        """Whether all are delivered or given up."""
        return all(part.receipt.settled for part in self._parts)

    def result(self, timeout: float | None = None) -> list[Range]:
        """Wait for all; raises the first error if there is one, TimeoutError if `timeout` seconds were not enough."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return [place for part in self._parts for place in _ranges(part)]

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait for all; the first error, with the number of its value."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for part in self._parts:
            _wait(part.receipt, None if deadline is None else max(0.0, deadline - time.monotonic()))
        failure = next(iter(self.failures()), None)
        if failure is None or not isinstance(failure.error, KafkaError):
            return failure and failure.error
        return KafkaError(failure.error.code, f"value {failure.guilty}: {failure.error.message}")

    def failures(self) -> list[Failure]:
        """Which of them were not delivered, and why; call it when all are done."""
        found: dict[tuple[Receipt, int], Failure] = {}  # one for each batch, of which there may be several parts here
        for part in self._parts:
            for first, failure in _failures(part):
                before = found.get((part.receipt, first))
                if before is not None:
                    blamed = before if failure.is_collateral else failure
                    failure = blamed._replace(rows=[*before.rows, *failure.rows])
                found[part.receipt, first] = failure
        return list(found.values())

    def add_done_callback(self, callback: Callable[["Deliveries"], object]) -> None:
        """Call it with these deliveries when all are done: now, or later in the producer's thread."""
        left = len(self._parts)
        counting = threading.Lock()  # guards `left`: batches of several leaders are settled in several threads

        def one_less(part: Part | None) -> None:
            nonlocal left
            with counting:
                left -= 1
                if left > 0:
                    return
            callback(self)

        for part in self._parts:
            part.receipt.add_callback(one_less, part)
        if not self._parts:
            one_less(None)


def _wait(receipt: Receipt, timeout: float | None) -> None:
    if not receipt.settled and not receipt.wait(timeout):
        raise TimeoutError(f"a record for {receipt.partition} is on its way for more than {timeout:g} s")


def _ranges(part: Part) -> list[Range]:
    """Where the records of a part went: one place, or several if its batch was split."""
    ranges: list[Range] = []
    index, end = part.first, part.first + len(part.rows)
    while index < end:
        first, outcome = part.receipt.part_of(index)
        count = min(end, first + outcome.records) - index
        base_offset = -1 if outcome.base_offset < 0 else outcome.base_offset + index - first
        ranges.append(Range(*part.receipt.partition, base_offset, count))
        index += count
    return ranges


def _failures(part: Part) -> Iterator[tuple[int, Failure]]:
    """What was refused of a part: all of it or, if its batch was split, some; and the first record of its batch."""
    index, end = part.first, part.first + len(part.rows)
    while index < end:
        first, outcome = part.receipt.part_of(index)
        stop = min(end, first + outcome.records)
        if outcome.error is not None:
            guilty = next((first + it for it in outcome.guilty if index <= first + it < stop), None)
            blamed = index if guilty is None else guilty
            error = part.receipt.error_of(blamed)
            assert error is not None
            rows = part.rows[index - part.first : stop - part.first]
            is_collateral = guilty is None and bool(outcome.guilty)
            yield first, Failure(rows, part.rows[blamed - part.first], error, is_collateral)
        index = stop
