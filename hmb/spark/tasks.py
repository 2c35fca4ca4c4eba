"""What a worker does: one range of offsets, read as Arrow columns, nothing fetched that is not in it.

The columns are those of Spark's Kafka connector, in its order::

    key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int,
    headers array<struct<key: string, value: binary>>  (with includeHeaders)

A record without a timestamp has -1, which is a millisecond before 1970, as there.  Where compaction has taken records
or a transaction was aborted, a range has fewer rows than offsets; that is no loss.  Where retention has taken them, or
the topic was deleted, or made anew and is shorter, it is one: the task fails and says which offsets are gone, unless
`failOnDataLoss` is false.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
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
from hmb.client.offsets import ISOLATION_LEVELS
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.spark.offsets import ends, patiently
from hmb.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from hmb.spark.options import SourceOptions

log = logging.getLogger(__name__)

COLUMNS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("timestampType", pa.int32()),
]
# What Spark makes of the type below: Arrow compares even the name of a list's items.
HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
SCHEMA = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
LOST = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
FETCH_BYTES = 8 * 1024 * 1024  # at once, which bounds a worker's memory; more is no faster
PATIENCE = 1.0  # seconds a poll


class DataLossError(Exception):
    """Offsets of a range are not there any more; set failOnDataLoss to false to go on without them."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Some data may have been lost. To go on without it, set the option failOnDataLoss=false"
        )


def schema(*, include_headers: bool) -> StructType:
    """The columns, in Spark's types."""
    return StructType([*SCHEMA, StructField("headers", ArrayType(HEADER))] if include_headers else SCHEMA)


def read(options: SourceOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of a range; after a loss that the query may go on without, those that are still there."""
    left: OffsetRange | None = wanted
    while left is not None:
        there = _still_there(options, left)
        if there.size <= 0 or (left is not wanted and there.first == left.first):
            return  # after a loss, only what begins later is worth a try: else the same error would come again
        left = yield from _read_until_lost(options, there)


def _read_until_lost(
    options: SourceOptions, wanted: OffsetRange
) -> Generator[pa.RecordBatch, None, OffsetRange | None]:
    """The records up to the end, or up to a loss: then what is left to be looked for behind it."""
    settings: dict[str, Any] = {"max_bytes": FETCH_BYTES, "max_partition_bytes": FETCH_BYTES, **options.consumer}
    consumer = patiently(options, lambda: Consumer(options.bootstrap_servers, until=wanted.end, **settings))
    with consumer:
        try:
            patiently(options, lambda: consumer.assign({wanted.partition: wanted.first}))
            while not consumer.at_end:
                batch = consumer.poll_arrow(PATIENCE)
                if batch is not None:
                    yield columns(batch, include_headers=options.include_headers)
        except KafkaError as error:
            if error.code not in LOST:
                raise
            left = wanted._replace(first=consumer.position(wanted.partition))
            data_loss(options, f"{left}: {error.message}", error)
            return left
    return None


def isolation_level(options: SourceOptions) -> int:
    """kafka.isolation.level, on the wire."""
    return ISOLATION_LEVELS[options.consumer.get("isolation_level", "read_uncommitted")]


def cluster_of(options: SourceOptions) -> Cluster:
    """The brokers of a query; to be closed."""
    settings = options.consumer
    return Cluster(
        options.bootstrap_servers, settings.get("client_id", "hmb-spark"), settings.get("request_timeout", 30.0)
    )


def data_loss(options: SourceOptions, what: str, cause: Exception | None = None) -> None:
    """Raises DataLossError, or where the query may go on says so in the log."""
    if options.fail_on_data_loss:
        raise DataLossError(what) from cause
    log.warning("%s: some data may have been lost", what)


def _still_there(options: SourceOptions, wanted: OffsetRange) -> OffsetRange:
    """What of a range can be read, which is all of it unless records are gone."""
    partition = wanted.partition
    try:
        with closing(cluster_of(options)) as cluster:
            bounds = patiently(options, lambda: ends(cluster, [partition], isolation_level(options)))
    except KafkaError as error:
        if error.code not in LOST:
            raise
        data_loss(options, f"{wanted} is to be read: {error.message}", error)
        return wanted._replace(end=wanted.first)
    start, end = (offsets[partition] for offsets in bounds)
    if start > wanted.first:
        data_loss(options, f"{wanted} is to be read, and the log begins at {start}")
    if end < wanted.end:
        data_loss(options, f"{wanted} is to be read, and the log ends before {end}")
    return wanted._replace(first=max(start, wanted.first), end=min(end, wanted.end))


def columns(batch: pa.RecordBatch, *, include_headers: bool) -> pa.RecordBatch:
    """Spark's columns of what the consumer hands out."""
    named = dict(zip(batch.schema.names, batch.columns, strict=True))
    named["timestamp"] = _timestamps(named["timestamp"])
    named["timestampType"] = named["timestamp_type"]
    arrays = [named[field.name].cast(field.type) for field in COLUMNS]
    fields = list(COLUMNS)
    if include_headers:
        headers = named["headers"].cast(HEADERS)
        has_none = pc.equal(pc.list_value_length(headers), 0)  # null, as the connector gives it
        arrays.append(pc.if_else(has_none, pa.scalar(None, HEADERS), headers))
        fields.append(pa.field("headers", HEADERS))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _timestamps(column: pa.Array) -> pa.Array:
    """-1 where there is none, which is rare."""
    if not column.null_count:
        return column
    return pc.fill_null(column.cast(pa.int64()), -1).cast(column.type)
