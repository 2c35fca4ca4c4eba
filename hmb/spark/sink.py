"""The sink: rows of a query, at rest or in motion, become records.

    df.write.format("hmb").mode("append").option("kafka.bootstrap.servers", ...).option("topic", "weather").save()
    df.writeStream.format("hmb").option(...).option("checkpointLocation", ...).start()

Columns and options are those of Spark's Kafka connector (`rows`, `options`).  Rows stay Arrow columns until the
producer encodes them.

At least once, as the connector: a task is done when the broker has acknowledged all its rows (`sending`); a task or a
batch that is run again writes its rows again.  `kafka.acks=0` asks for less.

Exactly once with `exactlyOnce=true`: one transaction for each task of a batch, which notes the batch (`once`).

- A streaming query: a batch that is run again after a crash is recognized and left out, task by task.
- A batch query has neither a query id nor batches: it is one job.  Within that job a row is written once, however often
  its task is tried.  A job that fails leaves what its finished tasks have committed, and whoever starts it again,
  starts another job, which writes all rows.  Exactly once over reruns takes a streaming query, with
  `Trigger.AvailableNow` for one that ends.

Different from the connector: `mode("append")` has to be said, for Spark knows no other default for Python sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from hmb.spark.once import check_transactions, deliver_once
from hmb.spark.options import OptionError, SinkOptions
from hmb.spark.rows import check_schema
from hmb.spark.sending import deliver

if TYPE_CHECKING:
    import pyarrow as pa

# Spark's local properties of a streaming query's tasks.
QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    rows: int


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver, once a job; its copies run in the tasks."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _context().partitionId()
        if self._options.exactly_once:
            return Written(deliver_once(self._options, self._job, 0, task, iterator))
        return Written(deliver(self._options, task, iterator))


class StreamWriter(DataSourceStreamArrowWriter):
    """The same for each batch of a streaming query.  Nothing is left to do when all tasks are done, or one failed."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = _context()
        if not self._options.exactly_once:
            return Written(deliver(self._options, context.partitionId(), iterator))
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise OptionError(
                "exactlyOnce=true needs a micro-batch query, whose tasks Spark tells which batch they are"
            )
        return Written(deliver_once(self._options, query, int(batch), context.partitionId(), iterator))


def batch_writer(options: SinkOptions, schema: StructType, overwrite: bool) -> BatchWriter:
    """Raises OptionError, RowError."""
    if overwrite:
        raise OptionError("save mode Overwrite not allowed: a topic's records stay; use mode('append')")
    _check(options, schema)
    return BatchWriter(options)


def stream_writer(options: SinkOptions, schema: StructType, overwrite: bool) -> StreamWriter:
    """In each output mode what a batch hands out is appended, as by the connector.  Raises OptionError, RowError."""
    _check(options, schema)
    return StreamWriter(options)


def _check(options: SinkOptions, schema: StructType) -> None:
    check_schema(schema, options)
    if options.exactly_once:
        check_transactions(options)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "writers run in tasks"
    return context
