"""The writers that Spark calls: they write the rows of a query to topics, one record for each row.

The first query of this example is a batch query, and the second is a streaming query. Both write the rows of a
DataFrame `df`:
    df.write.format("hmb").mode("append").option("kafka.bootstrap.servers", ...).option("topic", "weather").save()
    df.writeStream.format("hmb").option(...).option("checkpointLocation", ...).start()

The sink has the same columns and options as Spark's Kafka connector (modules `rows` and `options`). The rows remain in
Arrow columns until the producer encodes them as records.

By default, the sink writes at least once, as Spark's Kafka connector does. A task succeeds when the broker has
acknowledged all rows of the task (module `sending`). If Spark runs a task or a batch again, the task writes its rows
again. With `kafka.acks=0`, the sink does not wait for acknowledgments, so rows can be lost.

With the option `exactlyOnce=true`, the sink writes each row exactly once. A task writes its rows in one
transaction, and stores the batch number in the same transaction (module `once`).

With `exactlyOnce=true`, Spark can repeat a task without writing its rows twice. But if a whole query fails, the kind
of the query matters:
- Streaming query: each task writes its rows together with a note, "this batch is written". If Spark repeats the
  task after a restart of the query, the task finds the note, and writes nothing.
- Batch query: the rows of the finished tasks stay in the topic. If a user starts the query again, Spark does not
  know about the first attempt, and writes all rows again.

Instead of a batch query, you can use a streaming query with `Trigger.AvailableNow`. It also ends when it has
processed all available records, but does not duplicate rows after a failure.

At its start, a batch query asks the broker for metadata. If no broker answers, the address is probably wrong,
so the query fails immediately.

If the broker stops while a query runs, each task waits for the broker:
- To queue a row or commit a transaction, a task waits at most kafka.max.block.ms (60 s by default).
- To deliver queued rows, a task waits at most kafka.delivery.timeout.ms (120 s by default).

With `exactlyOnce=true`, a streaming query also waits before each batch, at most kafka.max.block.ms.

One thing is different from Spark's Kafka connector: a batch query must call `mode("append")`. Without this call, Spark
raises an error for a data source that is written in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
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

from hmb.client.metadata import Cluster
from hmb.spark.option_names import DEFAULT_NAME
from hmb.spark.options import OptionError, SinkOptions
from hmb.spark.writing.once import check_transactions, deliver_once
from hmb.spark.writing.rows import check_schema
from hmb.spark.writing.sending import deliver, patiently

if TYPE_CHECKING:
    import pyarrow as pa

# Spark passes the query id and the batch id to the tasks of a streaming query. The ids are in two local properties with
# these names.
QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class TaskCommit(WriterCommitMessage):
    """The message that a task sends to Spark's driver when all rows of the task are written."""

    rows: int  # the number of rows


class BatchWriter(DataSourceArrowWriter):
    """The writer of a batch query. Spark's driver creates one writer for each job, and each task uses a copy."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        task = _context().partitionId()
        if self._options.exactly_once:
            return TaskCommit(deliver_once(self._options, self._job, 0, task, iterator))
        return TaskCommit(deliver(self._options, task, iterator))


class StreamWriter(DataSourceStreamArrowWriter):
    """The writer of a streaming query. Spark's driver creates the writer, and each task of each batch uses a copy.

    The writer does not need Spark's methods `commit` and `abort`, because each task commits or aborts its own rows.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        context = _context()
        if not self._options.exactly_once:
            return TaskCommit(deliver(self._options, context.partitionId(), iterator))
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise OptionError(
                "exactlyOnce=true needs a micro-batch query, because Spark numbers the batches only in such queries"
            )
        return TaskCommit(deliver_once(self._options, query, int(batch), context.partitionId(), iterator))


def batch_writer(options: SinkOptions, schema: StructType, overwrite: bool) -> BatchWriter:
    """Check the options and the columns of a batch query, and return its writer.

    Raises RowError for a wrong or missing column, and ConnectionFailed if no broker answers. Raises OptionError
    for the save mode Overwrite, and if `exactlyOnce=true` needs transactions that the broker does not support.
    """
    if overwrite:
        raise OptionError("save mode Overwrite not allowed: a topic's records cannot be replaced; use mode('append')")
    check_schema(schema, options)
    with closing(Cluster(options.bootstrap_servers, DEFAULT_NAME, security=options.security)) as cluster:
        cluster.metadata(())
    if options.exactly_once:
        check_transactions(options)
    return BatchWriter(options)


def stream_writer(options: SinkOptions, schema: StructType, overwrite: bool) -> StreamWriter:
    """Check the options and the columns of a streaming query, and return its writer.

    With `exactlyOnce=true`, the function asks the broker whether it supports transactions. Spark calls the function
    for each batch, and the broker may be restarting then. So the function waits for an answer, for at most
    kafka.max.block.ms. After this time, it raises ConnectionFailed.

    The function ignores `overwrite`, because the sink can only append rows, like Spark's Kafka connector.

    Raises RowError if a column is wrong, and OptionError if the broker does not support transactions.
    """
    check_schema(schema, options)
    if options.exactly_once:
        patiently(options, lambda: check_transactions(options))
    return StreamWriter(options)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "Spark runs writers in tasks only"
    return context
