"""Read the range of one task: a worker process reads the records and returns them as Arrow columns.

A task returns the same columns as Spark's Kafka connector, in the same order. A colon separates each column's
name from its type:
    key: binary, value: binary, topic: string, partition: int, offset: long, timestamp: timestamp,
    timestampType: int, headers: array<struct<key: string, value: binary>>  (with includeHeaders)

The option `columns` selects some of the columns. The task does not decode the values of the other columns.

For a record without a timestamp, a task returns the timestamp -1 ms (one millisecond before 1970), as Spark's
Kafka connector does.

A task can return fewer rows than its range has offsets. This is normal if compaction has removed records, or if
a transaction was aborted. But in three cases, data is lost. By default, the task then fails with an error that
names the missing offsets. With `failOnDataLoss=false`, it logs a warning instead. The cases are:
- Retention has deleted records of the range.
- The topic was deleted.
- The topic was deleted and created again, and has fewer records than before.

Example: a task reads the offsets 100 to 199 of partition `weather-0`, but retention has deleted the offsets 100 to 149.
With `failOnDataLoss=false`, the task logs a warning and returns the records from offset 150 on. By default, the task
fails.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from hmb.client.consuming.consumer import Consumer
from hmb.client.metadata import Cluster
from hmb.protocol.enums import ISOLATION_LEVELS
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.spark.offsets import ends, retrying
from hmb.spark.option_names import DEFAULT_NAME
from hmb.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from hmb.spark.options import SourceOptions

LOGGER = logging.getLogger(__name__)

# For the column `headers`, Spark accepts only this Arrow type. The name of a list's items is a part of the type, and
# Spark uses the name "element".
HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
COLUMNS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("timestampType", pa.int32()),
    pa.field("headers", HEADERS),
]
CLIENT_NAMES = {"timestampType": "timestamp_type"}  # Spark's name of a column -> another name in `hmb.Consumer`
SCHEMA = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
    StructField("headers", ArrayType(HEADER)),
]
LOST = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
FETCH_BYTES = 8 * 1024 * 1024  # The limit of a fetch also bounds a worker's memory. Larger fetches are not faster.
POLL_TIMEOUT = 1.0  # seconds


class DataLossError(Exception):
    """The query cannot read some records: they were deleted. With failOnDataLoss=false, it continues without them."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"{problem}. Some data may have been lost. To continue without it, set the option failOnDataLoss=false"
        )


def schema(names: Iterable[str]) -> StructType:
    """Return the columns with these names, with Spark's types."""
    types = {field.name: field for field in SCHEMA}
    return StructType([types[name] for name in names])


def read(options: SourceOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Read the records of a range as Arrow batches.

    If records of the range were deleted, raise DataLossError. But if failOnDataLoss is false, return the remaining
    records of the range.
    """
    remaining: OffsetRange | None = wanted
    while remaining is not None:
        readable = _readable(options, remaining)
        if readable.size <= 0 or (remaining is not wanted and readable.first == remaining.first):
            return  # Another attempt at the same offset would fail with the same error.
        remaining = yield from _read_until_lost(options, readable)


def _read_until_lost(
    options: SourceOptions, wanted: OffsetRange
) -> Generator[pa.RecordBatch, None, OffsetRange | None]:
    """Yield the records as Arrow batches, up to the end of the range or up to the first deleted record.

    If the generator has read the whole range, it returns None. If records of the range were deleted, it returns the
    unread part of the range.
    """
    settings: dict[str, Any] = {"max_bytes": FETCH_BYTES, "max_partition_bytes": FETCH_BYTES, **options.consumer}
    settings["security"] = options.security
    names = [CLIENT_NAMES.get(name, name) for name in options.columns]
    consumer = retrying(options, lambda: Consumer(options.bootstrap_servers, until=wanted.end, **settings))
    with consumer:
        try:
            retrying(options, lambda: consumer.assign({wanted.partition: wanted.first}))
            while not consumer.at_end:
                batch = consumer.poll_arrow(POLL_TIMEOUT, names)
                if batch is not None:
                    yield columns(batch, options.columns)
        except KafkaError as error:
            if error.code not in LOST:
                raise
            unread = wanted._replace(first=consumer.position(wanted.partition))
            data_loss(options, f"{unread}: {error.message}", error)
            return unread
    return None


def isolation_level(options: SourceOptions) -> int:
    """Return the number that Kafka's protocol uses for the level in the option kafka.isolation.level."""
    return ISOLATION_LEVELS[options.setting("isolation_level")]


def cluster_of(options: SourceOptions) -> Cluster:
    """Open a connection to the brokers of a query. The caller must close the connection."""
    return Cluster(
        options.bootstrap_servers,
        options.consumer.get("client_id", DEFAULT_NAME),
        options.setting("request_timeout"),
        security=options.security,
    )


def data_loss(options: SourceOptions, problem: str, cause: Exception | None = None) -> None:
    """Raise DataLossError if failOnDataLoss is true. Otherwise log a warning."""
    if options.fail_on_data_loss:
        raise DataLossError(problem) from cause
    LOGGER.warning("%s: some data may have been lost", problem)


def _readable(options: SourceOptions, wanted: OffsetRange) -> OffsetRange:
    """Return the part of a range that the log still contains. If no records were deleted, return the whole range."""
    partition = wanted.partition
    try:
        with closing(cluster_of(options)) as cluster:
            bounds = retrying(options, lambda: ends(cluster, [partition], isolation_level(options)))
    except KafkaError as error:
        if error.code not in LOST:
            raise
        data_loss(options, f"cannot read {wanted}: {error.message}", error)
        return wanted._replace(end=wanted.first)
    start, end = (offsets[partition] for offsets in bounds)
    if start > wanted.first:
        data_loss(options, f"cannot read all of {wanted}: the log starts at {start}")
    if end < wanted.end:
        data_loss(options, f"cannot read all of {wanted}: the log ends at {end}")
    return wanted._replace(first=max(start, wanted.first), end=min(end, wanted.end))


def columns(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return the columns `names` of a batch from `hmb.Consumer`, with Spark's names and types."""
    fields = {field.name: field for field in COLUMNS}
    arrays = [_column(batch, name).cast(fields[name].type) for name in names]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([fields[name] for name in names]))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = batch.column(CLIENT_NAMES.get(name, name))
    if name == "timestamp":
        return _timestamps(column)
    if name == "headers":
        # For a record without headers, return null instead of an empty list, as Spark's Kafka connector does.
        has_none = pc.equal(pc.list_value_length(column), 0)
        return pc.if_else(has_none, pa.scalar(None, HEADERS), column.cast(HEADERS))
    return column


def _timestamps(column: pa.Array) -> pa.Array:
    """Replace each null in the column by -1. If the column contains no null, return the column unchanged."""
    if not column.null_count:
        return column
    return pc.fill_null(column.cast(pa.int64()), -1).cast(column.type)
