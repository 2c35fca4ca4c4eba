"""Check the columns of the rows that a query writes, and group the rows by topic and partition.

The columns and the error messages are the same as in Spark's Kafka connector:
    value      string or binary; required. A null value is a tombstone: compaction deletes the key
    key        string or binary; may be null
    headers    array<struct<key: string, value: binary>>; may be null
    topic      string; required if the option `topic` is not set. The option takes precedence over the column
    partition  int; if it is null or missing, the partitioner chooses the partition

The sink ignores columns with names other than value, key, headers, topic and partition.

Spark passes the rows in Arrow batches. `Producer.send_many` sends whole columns to one topic. This module therefore
groups the rows of a batch by topic and partition. For example, a batch of 1,000 rows for two topics becomes two groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

if TYPE_CHECKING:
    from hmb.records import Header
    from hmb.spark.options import SinkOptions

TEXT_OR_BYTES = (StringType, BinaryType)
USE_THE_OPTION = "Use the topic option for setting a topic"
# Error messages show the number of a row, so this module adds a column with the numbers. In each Spark task, the first
# row has the number 0.
ROW = "row"


class RowError(ValueError):
    """Rows cannot be written as records, because a column or a value has the wrong type or is missing."""


class Rows(NamedTuple):
    """Rows of one batch that have the same topic and the same value in the column `partition`."""

    topic: str
    partition: int | None  # None: the partitioner chooses a partition for each row
    values: pa.Array
    keys: pa.Array | None  # None: all keys are null
    headers: list[list[Header]] | None  # None: no row has headers
    numbers: pa.Array  # for each row, the number of rows before it in the same Spark task


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Raise RowError if a required column is missing, or if a column has the wrong type."""
    types: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise RowError("required attribute 'value' not found: add a column `value` of the type string or binary")
    if options.topic is None and "topic" not in types:
        raise RowError(f"topic option required when no 'topic' attribute is present. {USE_THE_OPTION}")
    for name, kinds, expected in (
        ("topic", StringType, "a string"),
        ("key", TEXT_OR_BYTES, "a string or binary"),
        ("value", TEXT_OR_BYTES, "a string or binary"),
        ("partition", IntegerType, "an int"),
    ):
        if name in types and not isinstance(types[name], kinds):
            raise RowError(f"{name} attribute type must be {expected}, not {types[name].simpleString()}")
    if "headers" in types and not _are_headers(types["headers"]):
        expected = "an array<struct<key:string,value:binary>>"
        raise RowError(f"headers attribute type must be {expected}, not {types['headers'].simpleString()}")


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return fields == [("key", StringType), ("value", BinaryType)]


def by_destination(batch: pa.RecordBatch, first: int, options: SinkOptions) -> Iterator[Rows]:
    """Group the rows of a batch by topic and partition.

    A Spark task writes its rows in several batches, and the rows of a task are numbered from 0. `first` is the
    number of the first row in this batch. Raises RowError if a row has no topic, or if a header has no name.
    """
    names = set(batch.schema.names)
    columns = {name: batch.column(name) for name in ("value", "key", "headers", "topic", "partition") if name in names}
    columns[ROW] = pa.array(range(first, first + batch.num_rows), pa.int64())
    rows = pa.RecordBatch.from_pydict(columns)
    by_topic = [(options.topic, rows)] if options.topic is not None else _by(rows, "topic")
    for topic, of_topic in by_topic:
        if topic is None:
            raise RowError(f"null topic present in the data (row {of_topic.column(ROW)[0]}). {USE_THE_OPTION}")
        for partition, some in _by(of_topic, "partition") if "partition" in names else [(None, of_topic)]:
            keys = some.column("key") if "key" in names else None
            if keys is not None and keys.null_count == len(keys):
                keys = None  # `send_many` is four times as fast without keys.
            headers = _headers(some) if "headers" in names else None
            yield Rows(topic, partition, some.column("value"), keys, headers, some.column(ROW))


def _by(rows: pa.RecordBatch, name: str) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """Group rows by the values of a column, and keep the order of the rows in each group."""
    column = rows.column(name)
    values = pc.unique(column).to_pylist()
    for value in values:
        wanted = pc.is_null(column) if value is None else pc.equal(column, value)
        yield value, rows if len(values) == 1 else rows.filter(wanted)


def _headers(rows: pa.RecordBatch) -> list[list[Header]] | None:
    """Return the headers of each row, or None if no row has headers. Raises RowError for a header without a name."""
    column = rows.column("headers")
    if not len(pc.list_flatten(column)):
        return None
    found: list[list[Header]] = []
    for number, headers in enumerate(column.to_pylist()):
        found.append([(each["key"], each["value"]) for each in headers or ()])
        if any(name is None for name, _ in found[-1]):
            raise RowError(f"row {rows.column(ROW)[number]} contains a header without a name")
    return found
