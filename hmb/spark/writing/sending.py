"""Send the rows of one task to the broker. If a record is not delivered, raise an error that names the record.

A task passes whole Arrow columns to `Producer.send_many`. This method queues the records, and does not wait until they
are sent. The method waits only while the producer's buffer is full. When the broker has acknowledged a group of rows,
the task frees the memory of these rows. A task with many rows therefore needs memory only for the rows in the
producer's buffer.

In a streaming query, each task of each batch creates a new producer. If the first connection of a new producer fails,
the producer raises an error at once. A broker that restarts would therefore end the query. To prevent this, the
function `patiently` tries again until a broker answers, for at most kafka.max.block.ms (60 s by default).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import pyarrow.compute as pc

from hmb.client.connection import ConnectionFailed
from hmb.client.producing.delivery import Deliveries
from hmb.client.producing.producer import Producer
from hmb.client.retries import with_retries
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.spark.writing.rows import Rows, by_destination

if TYPE_CHECKING:
    import pyarrow as pa

    from hmb.spark.options import SinkOptions

T = TypeVar("T")

MAX_KEY_SHOWN = 40  # bytes or characters of a key in an error message


class UndeliveredError(Exception):
    """A row was not delivered as a record. The error text names the row and the reason."""


def patiently(options: SinkOptions, action: Callable[[], T]) -> T:
    """Call `action` until a broker answers, but for at most kafka.max.block.ms. Return the result of `action`."""
    return with_retries(action, lambda error: options.max_block if isinstance(error, ConnectionFailed) else 0.0)


class RowSender:
    """Sends the rows of one task through one producer."""

    def __init__(self, producer: Producer, options: SinkOptions, task: int) -> None:
        self._producer, self._options, self._task = producer, options, task
        self._in_flight: deque[tuple[Rows, Deliveries]] = deque()
        self.rows = 0  # the number of rows that `send` has received
        self.topic: str | None = None  # the topic of the first row

    def send(self, batch: pa.RecordBatch) -> None:
        """Queue the rows of a batch, and check the results that have arrived for earlier rows.

        Raises UndeliveredError, RowError.
        """
        for rows in by_destination(batch, self.rows, self._options):
            self.topic = self.topic or rows.topic
            self._in_flight.append((rows, self._queue(rows)))
        self.rows += batch.num_rows
        while self._in_flight and self._in_flight[0][1].done():
            self._check(*self._in_flight.popleft())

    def finish(self) -> None:
        """Wait until the broker has acknowledged all rows. Raises UndeliveredError."""
        self._producer.flush()
        while self._in_flight:
            self._check(*self._in_flight.popleft())

    def _queue(self, rows: Rows) -> Deliveries:
        columns = (rows.topic, rows.values, rows.keys, rows.partition, rows.headers)
        try:
            # If `send_many` cannot get the topic's metadata, it raises ConnectionFailed before it queues a row. So
            # `patiently` can call `send_many` again, and no row is sent twice.
            return patiently(self._options, lambda: self._producer.send_many(*columns))
        except KafkaError as error:
            index = _largest(rows.values) if error.code is ErrorCode.MESSAGE_TOO_LARGE else 0
            raise self._undelivered(rows, index, error) from error

    def _check(self, rows: Rows, deliveries: Deliveries) -> None:
        for failure in deliveries.failures():
            raise self._undelivered(rows, failure.failed_row, failure.error) from failure.error

    def _undelivered(self, rows: Rows, index: int, error: Exception) -> UndeliveredError:
        key = None if rows.keys is None else rows.keys[index].as_py()
        row = f"row {rows.numbers[index]} of task {self._task} (topic {rows.topic!r}"
        row += ")" if key is None else f", key {key[:MAX_KEY_SHOWN]!r})"
        is_too_large = isinstance(error, KafkaError) and error.code is ErrorCode.MESSAGE_TOO_LARGE
        fix = ". With Spark, the option kafka.max.request.size raises the limit of the client" if is_too_large else ""
        return UndeliveredError(f"{row} was not delivered: {error}{fix}")


def _largest(values: pa.Array) -> int:
    """Return the index of the longest value."""
    sizes = pc.fill_null(pc.binary_length(values), 0)
    index: int = pc.index(sizes, pc.max(sizes)).as_py()
    return index


def deliver(options: SinkOptions, task: int, batches: Iterator[pa.RecordBatch]) -> int:
    """Deliver the rows of a task at least once, and return the number of rows.

    If the task has no rows, the function does not connect to the broker. Raises UndeliveredError, RowError,
    ConnectionFailed.
    """
    first = next(batches, None)
    if first is None:
        return 0
    with Producer(options.bootstrap_servers, security=options.security, **options.producer) as producer:
        sender = RowSender(producer, options, task)
        sender.send(first)
        for batch in batches:
            sender.send(batch)
        sender.finish()
    return sender.rows
