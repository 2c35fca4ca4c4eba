"""A task's rows on their way to the broker: what was not delivered is an error that names the record.

Columns go to `Producer.send_many` as they are.  It returns at once, and waits where its buffer is full; what is
delivered is let go of, so that a task holds no more than that buffer, however many rows it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from hmb.client.producing.delivery import Deliveries
from hmb.client.producing.producer import Producer
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.spark.rows import Rows, parted

if TYPE_CHECKING:
    import pyarrow as pa

    from hmb.spark.options import SinkOptions

MOST_OF_A_KEY = 40  # bytes that are shown


class UndeliveredError(Exception):
    """A record that the broker has not got, and why."""


class Sending:
    """The rows of one task, through one producer."""

    def __init__(self, producer: Producer, options: SinkOptions, task: int) -> None:
        self._producer, self._options, self._task = producer, options, task
        self._under_way: deque[tuple[Rows, Deliveries]] = deque()
        self.rows = 0  # taken so far
        self.topic: str | None = None  # of the first row

    def send(self, batch: pa.RecordBatch) -> None:
        """Queue some more, and look what became of those before."""
        for rows in parted(batch, self.rows, self._options):
            self.topic = self.topic or rows.topic
            self._under_way.append((rows, self._queued(rows)))
        self.rows += batch.num_rows
        while self._under_way and self._under_way[0][1].done():
            self._check(*self._under_way.popleft())

    def finish(self) -> None:
        """All is delivered when this returns."""
        self._producer.flush()
        while self._under_way:
            self._check(*self._under_way.popleft())

    def _queued(self, rows: Rows) -> Deliveries:
        try:
            return self._producer.send_many(rows.topic, rows.values, rows.keys, rows.partition, rows.headers)
        except KafkaError as error:
            guilty = _largest(rows.values) if error.code is ErrorCode.MESSAGE_TOO_LARGE else 0
            raise self._undelivered(rows, guilty, error) from error

    def _check(self, rows: Rows, deliveries: Deliveries) -> None:
        for failure in deliveries.failures():
            raise self._undelivered(rows, failure.failed_row, failure.error) from failure.error

    def _undelivered(self, rows: Rows, index: int, error: Exception) -> UndeliveredError:
        key = None if rows.keys is None else rows.keys[index].as_py()
        what = f"row {rows.numbers[index]} of task {self._task} (topic {rows.topic!r}"
        what += "" if key is None else f", key {key[:MOST_OF_A_KEY]!r}"
        return UndeliveredError(f"{what}) was not delivered: {error}")


def _largest(values: pa.Array) -> int:
    """The number of the longest value."""
    sizes = pc.fill_null(pc.binary_length(values), 0)
    index: int = pc.index(sizes, pc.max(sizes)).as_py()
    return index


def deliver(options: SinkOptions, task: int, batches: Iterator[pa.RecordBatch]) -> int:
    """At least once: how many rows were delivered; whoever has none connects to nobody."""
    first = next(batches, None)
    if first is None:
        return 0
    with Producer(options.bootstrap_servers, **options.producer) as producer:
        sending = Sending(producer, options, task)
        sending.send(first)
        for batch in batches:
            sending.send(batch)
        sending.finish()
    return sending.rows
