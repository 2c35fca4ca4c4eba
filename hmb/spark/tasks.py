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
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hmb.client.consumer import Consumer
from hmb.protocol.errors import ErrorCode, KafkaError
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
SCHEMA = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
SCHEMA_OF_HEADERS = "headers array<struct<key: string, value: binary>>"
LOST = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
FETCH_BYTES = 8 * 1024 * 1024  # at once, which bounds a worker's memory; more is no faster
PATIENCE = 1.0  # seconds a poll


class DataLossError(Exception):
    """Offsets of a range are not there any more; set failOnDataLoss to false to go on without them."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Some data may have been lost. To go on without it, set the option failOnDataLoss=false"
        )


def schema(*, include_headers: bool) -> str:
    """The columns, as Spark writes types."""
    return f"{SCHEMA}, {SCHEMA_OF_HEADERS}" if include_headers else SCHEMA


def read(options: SourceOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of a range."""
    settings: dict[str, Any] = {"max_bytes": FETCH_BYTES, "max_partition_bytes": FETCH_BYTES, **options.consumer}
    with Consumer(options.bootstrap_servers, until=wanted.end, **settings) as consumer:
        try:
            first = _first_there(consumer, options, wanted)
            if first >= wanted.end:
                return
            consumer.assign({wanted.partition: first})
            yield from _batches(consumer, options)
        except KafkaError as error:
            if error.code not in LOST:
                raise
            data_loss(options, f"{wanted}: {error.message}", error)


def data_loss(options: SourceOptions, what: str, cause: Exception | None = None) -> None:
    """Raises DataLossError, or where the query may go on says so in the log."""
    if options.fail_on_data_loss:
        raise DataLossError(what) from cause
    log.warning("%s: some data may have been lost", what)


def _first_there(consumer: Consumer, options: SourceOptions, wanted: OffsetRange) -> int:
    """Where reading can begin, which is the range's first offset unless records are gone."""
    start = consumer.beginning_offsets([wanted.partition])[wanted.partition]
    end = consumer.end_offsets([wanted.partition])[wanted.partition]
    if start > wanted.first:
        data_loss(options, f"{wanted} is to be read, and the log begins at {start}")
    if end < wanted.end:
        data_loss(options, f"{wanted} is to be read, and the log ends before {end}")
        return wanted.end if end <= wanted.first else max(start, wanted.first)
    return max(start, wanted.first)


def _batches(consumer: Consumer, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    while not consumer.at_end:
        batch = consumer.poll_arrow(PATIENCE)
        if batch is not None:
            yield columns(batch, include_headers=options.include_headers)


def columns(batch: pa.RecordBatch, *, include_headers: bool) -> pa.RecordBatch:
    """Spark's columns of what the consumer hands out."""
    named = {
        "timestamp": pc.fill_null(batch.column("timestamp").cast(pa.int64()), -1).cast(pa.timestamp("ms", "UTC")),
        "timestampType": batch.column("timestamp_type"),
    }
    arrays = [(named.get(field.name) or batch.column(field.name)).cast(field.type) for field in COLUMNS]
    fields = list(COLUMNS)
    if include_headers:
        arrays.append(batch.column("headers").cast(HEADERS))
        fields.append(pa.field("headers", HEADERS))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
