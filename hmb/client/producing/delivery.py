"""The results of `send` and `send_many`. Both methods return a result object before the records are written.

An application can wait for the result of `send`. It can also pass a function (`on_delivery`), which the producer calls
when the result is known:
    producer.send("weather", b"rain").result()
    producer.send("weather", b"rain", on_delivery=print)

A broker answers each batch, not each record. All deliveries of a batch therefore share one `BatchResult`. Each
delivery refers to this object, and contains one record's timestamp and index in the batch.

A delivery takes 56 bytes of memory. A `concurrent.futures.Future` for each record would take about 25 times as
much memory, because each future has its own lock and its own list of callbacks. If the application does not
keep a delivery, Python frees its memory immediately.

A `Delivery` has the same methods as `concurrent.futures.Future`, except `cancel`. The producer cannot cancel a record
after `send`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hmb.protocol.enums import NO_OFFSET
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import NO_TIMESTAMP

LOGGER = logging.getLogger(__name__)
T = TypeVar("T")


class RecordMetadata(NamedTuple):
    """The position of a record that the broker has written: its topic, partition and offset.

    `offset` is -1 if the broker did not report the offset, for example with `acks=0`.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class Outcome(NamedTuple):
    """The result of a batch: the offset of its first record, or an error.

    If a batch was split, each part has its own `Outcome`.
    """

    records: int
    base_offset: int = NO_OFFSET
    log_append_time: int = NO_TIMESTAMP  # in ms; NO_TIMESTAMP means that the records keep their own timestamps
    error: Exception | None = None
    # If one record is invalid, the broker rejects the whole batch. This dict maps the index of each invalid record to
    # the broker's message. Indexes begin at 0. If the batch was split, each part counts its own records.
    record_errors: Mapping[int, str] = {}

    def offset_of(self, index: int) -> int:
        """Return the offset of a record. `index` is the index of the record in this part of the batch.

        Return NO_OFFSET if the broker did not report the offset.
        """
        return NO_OFFSET if self.base_offset < 0 else self.base_offset + index


class BatchResult:
    """The result of a batch. If the batch was split, the `BatchResult` contains the result of each part."""

    __slots__ = ("_callbacks", "_changed", "_lock", "_missing", "_outcomes", "callbacks_done", "partition", "send_now")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.callbacks_done = False
        # If a thread calls this function, the producer sends the batch at once, without more records. Without a call,
        # the producer waits up to `linger` seconds for more records.
        self.send_now: Callable[[BatchResult], None] | None = None
        self._missing = 1  # the number of parts of the batch that have no outcome yet
        self._outcomes: dict[int, Outcome] = {}  # the outcome of each part, by the index of its first record
        # Each pair contains a callback and its argument. The callbacks are called when every record of the batch has
        # been written or has failed.
        self._callbacks: list[tuple[Callable[[Any], object], object]] = []
        # Only a thread that holds `_lock` changes the fields above. There is one exception: the accumulator sets
        # `send_now` without the lock, before any other thread knows this object.
        #
        # Threads read four fields without `_lock`. `_missing` does not change after it has become 0, and
        # `callbacks_done` does not change after it has become True. Threads read `_outcomes` only when it is complete.
        # `send_now` can become None after a thread has read it. The thread's call then has no effect, because the batch
        # is complete.
        self._lock = threading.Lock()
        self._changed: threading.Condition | None = None  # uses `_lock`; created when a thread first waits

    @property
    def completed(self) -> bool:
        """True if the outcome of each part of the batch is known."""
        return not self._missing

    def split(self) -> None:
        """Expect one more outcome, because the producer has split a part of the batch into two parts.

        Each part of the batch has one outcome: the broker has written the part, or the part has failed.
        """
        with self._lock:
            self._missing += 1

    def complete(self, first: int, outcome: Outcome) -> None:
        """Set the outcome of one part of the batch. `first` is the index of the part's first record.

        If this part already has an outcome, do nothing. When each part has an outcome, wake all waiting threads and
        call all callbacks.
        """
        with self._lock:
            if first in self._outcomes:
                return
            self._outcomes[first] = outcome
            self._missing -= 1
            if self._missing:
                return
            self.send_now = None
            callbacks, self._callbacks = self._callbacks, []
            self._wake_all()
        for callback, argument in callbacks:
            # A callback can raise SystemExit, which is a BaseException but not an Exception. The sender thread must not
            # end because of it.
            _call(callback, argument, BaseException)
        with self._lock:
            self.callbacks_done = True
            self._wake_all()

    def add_callback(self, callback: Callable[[T], object], argument: T) -> None:
        """Call `callback(argument)` when the result is complete, or now if the result is already complete."""
        with self._lock:
            if self._missing:
                self._callbacks.append((callback, argument))
                return
        _call(callback, argument)

    def wait(self, timeout: float | None) -> bool:
        """Wait at most `timeout` seconds for the result. Return whether the result is complete.

        The calling thread needs the result soon. The producer therefore sends the batch immediately, without waiting up
        to `linger` seconds for more records.
        """
        send_now = self.send_now
        if send_now is not None:
            send_now(self)
        return self._wait_for(lambda: not self._missing, timeout)

    def wait_for_callbacks(self, timeout: float) -> bool:
        """Wait until all callbacks have returned, at most `timeout` seconds. Return whether all have returned."""
        return self.callbacks_done or self._wait_for(lambda: self.callbacks_done, timeout)

    def _wait_for(self, predicate: Callable[[], bool], timeout: float | None) -> bool:
        with self._lock:
            if self._changed is None:
                self._changed = threading.Condition(self._lock)
            return self._changed.wait_for(predicate, timeout)

    def _wake_all(self) -> None:
        """Wake all waiting threads. The caller holds the lock."""
        if self._changed is not None:
            self._changed.notify_all()

    def part_of(self, index: int) -> tuple[int, Outcome]:
        """Find the part of the batch that contains the record with this index.

        Return the index of the first record of this part, and the outcome of the part.
        """
        first = max(start for start in self._outcomes if start <= index)
        return first, self._outcomes[first]

    def error_of(self, index: int) -> Exception | None:
        """Return the error of the record with this index, or None if the record was delivered.

        Call this method only after the result is complete.

        If one record of a batch is invalid, the broker rejects the whole batch. The invalid record's error contains the
        broker's reason. Each valid record has an error that names an invalid record and contains the broker's reason.
        """
        first, outcome = self.part_of(index)
        if not outcome.record_errors or not isinstance(outcome.error, KafkaError):
            return outcome.error
        own = outcome.record_errors.get(index - first)
        if own is not None:
            return KafkaError(outcome.error.code, f"{self.partition}: {own}")
        number, why = next(iter(outcome.record_errors.items()))
        what = f"rejected together with record {number + 1} of the {outcome.records} in its batch: {why}"
        return KafkaError(outcome.error.code, f"{self.partition}: {what}")


def _call(callback: Callable[[T], object], argument: T, caught: type[BaseException] = Exception) -> None:
    """Call a callback. If it raises an error, only log the error, because other callbacks must be called, too."""
    try:
        callback(argument)
    except caught:
        LOGGER.exception("a delivery's callback failed")


class Delivery:
    """The future result of one `send`. The application can wait for the result or add a callback."""

    __slots__ = ("_index", "_result", "_timestamp")

    def __init__(self, result: BatchResult, index: int, timestamp: int) -> None:
        self._result, self._index, self._timestamp = result, index, timestamp

    def done(self) -> bool:
        """Return whether the record is delivered or has failed."""
        return self._result.completed

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the delivery. Return the partition and the offset of the record.

        Raises the record's error if the record was not delivered, and TimeoutError after `timeout` seconds. Without
        `timeout`, the method waits until the record is delivered or has failed. This takes at most about
        `delivery_timeout`.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        first, outcome = self._result.part_of(self._index)
        offset = outcome.offset_of(self._index - first)
        timestamp = self._timestamp if outcome.log_append_time < 0 else outcome.log_append_time
        return RecordMetadata(*self._result.partition, offset, timestamp)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait for the delivery. Return the error of the record, or None if the record was delivered.

        Raises TimeoutError after `timeout` seconds.
        """
        _wait(self._result, timeout)
        return self._result.error_of(self._index)

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call `callback` with this delivery when the record is delivered or has failed.

        - If the result is already known, this method calls `callback` itself.
        - If `Producer.close` gives up the record, the thread that called `close` calls `callback`.
        - Otherwise, a thread of the producer calls `callback` later. `callback` can send records, but must not wait for
          their results: a waiting thread cannot send these records.
        """
        self._result.add_callback(callback, self)


class Range(NamedTuple):
    """Records of one `send_many` call that the broker has written at consecutive offsets."""

    topic: str
    partition: int
    base_offset: int  # -1 if the broker did not report the offset
    records: int


class Failure(NamedTuple):
    """Records of one `send_many` call that failed together because of one error."""

    rows: Sequence[int]  # the indexes of the failed records in the list of values that was passed to `send_many`
    # One of the indexes in `rows`: the first index that the broker reports as invalid. If it reports none of them, this
    # is the first index in `rows`.
    failed_row: int
    error: Exception
    caused_elsewhere: bool = False  # whether the invalid record comes from another call of `send_many`


class BatchSlice(NamedTuple):
    """The records of one `send_many` call that are in the same batch."""

    result: BatchResult
    first: int  # the index in the batch at which the records of this `send_many` call begin
    rows: Sequence[int]  # the indexes of the slice's records in the list of values that was passed to `send_many`


class Deliveries:
    """The future results of one call of `send_many`. The application can wait for these results."""

    __slots__ = ("_slices",)

    def __init__(self, slices: Sequence[BatchSlice]) -> None:
        self._slices = slices

    def done(self) -> bool:
        """Return whether each record is delivered or has failed."""
        return all(piece.result.completed for piece in self._slices)

    def result(self, timeout: float | None = None) -> list[Range]:
        """Wait until each record is delivered or has failed.

        If all records were delivered, return the offsets at which the broker has written them. Otherwise, raise the
        first error. Raises TimeoutError if some results are still unknown after `timeout` seconds.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return [written for piece in self._slices for written in _ranges(piece)]

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait until each record is delivered or has failed. Return the first error, or None.

        The result is None if all records were delivered. The message of a KafkaError begins with the index of a failed
        record in the `send_many` call: "value 0" is the first record. Raises TimeoutError if some results are still
        unknown after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        for piece in self._slices:
            _wait(piece.result, None if deadline is None else max(0.0, deadline - time.monotonic()))
        failure = next(iter(self.failures()), None)
        if failure is None or not isinstance(failure.error, KafkaError):
            return failure and failure.error
        return KafkaError(failure.error.code, f"value {failure.failed_row}: {failure.error.message}")

    def failures(self) -> list[Failure]:
        """Return one `Failure` for each batch that failed, or for each failed part of a batch that was split.

        Call this method only after each record was delivered or has failed.
        """
        found: dict[tuple[BatchResult, int], Failure] = {}
        for piece in self._slices:
            for first, failure in _failures(piece):
                before = found.get((piece.result, first))
                if before is not None:
                    cause = failure if before.caused_elsewhere and not failure.caused_elsewhere else before
                    failure = cause._replace(rows=[*before.rows, *failure.rows])
                found[piece.result, first] = failure
        return list(found.values())

    def add_done_callback(self, callback: Callable[[Deliveries], object]) -> None:
        """Call `callback` once, with this object, when all records are delivered or have failed.

        If all results are already known, this method calls `callback` itself. If a result is not known yet, a sender
        thread calls `callback` later.
        """
        left = len(self._slices)
        counting = threading.Lock()  # guards `left`, because several sender threads can complete batches at once

        def one_is_done(piece: BatchSlice | None) -> None:
            nonlocal left
            with counting:
                left -= 1
                if left > 0:
                    return
            callback(self)

        for piece in self._slices:
            piece.result.add_callback(one_is_done, piece)
        if not self._slices:
            one_is_done(None)


def _wait(result: BatchResult, timeout: float | None) -> None:
    if not result.completed and not result.wait(timeout):
        raise TimeoutError(f"a record for {result.partition} was not delivered within {timeout:g} s")


def _ranges(piece: BatchSlice) -> list[Range]:
    """Return the offsets at which the broker has written the records of a slice (`BatchSlice`).

    Usually, the result is one range. If the batch was split, the records can be in several ranges.
    """
    ranges: list[Range] = []
    index, end = piece.first, piece.first + len(piece.rows)
    while index < end:
        first, outcome = piece.result.part_of(index)
        count = min(end, first + outcome.records) - index
        ranges.append(Range(*piece.result.partition, outcome.offset_of(index - first), count))
        index += count
    return ranges


def _failures(piece: BatchSlice) -> Iterator[tuple[int, Failure]]:
    """Yield a pair `(index, failure)` for each failure of records in `piece`.

    `piece` contains the records of a batch that come from one `send_many` call. If the batch was split, each
    failed part with records of `piece` has its own pair.

    The number `index` is the position of the part's first record in the original batch (0 without a split).
    `failure` describes the records of `piece` that failed.
    """
    index, end = piece.first, piece.first + len(piece.rows)
    while index < end:
        first, outcome = piece.result.part_of(index)
        stop = min(end, first + outcome.records)
        if outcome.error is not None:
            invalid = next((first + number for number in outcome.record_errors if index <= first + number < stop), None)
            failed = index if invalid is None else invalid
            error = piece.result.error_of(failed)
            assert error is not None
            rows = piece.rows[index - piece.first : stop - piece.first]
            caused_elsewhere = invalid is None and bool(outcome.record_errors)
            yield first, Failure(rows, piece.rows[failed - piece.first], error, caused_elsewhere)
        index = stop
