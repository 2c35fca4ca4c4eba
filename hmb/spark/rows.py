"""What the sink takes of a query's rows: the columns of Spark's Kafka connector, checked as it checks them.

    value      string or binary; must be there, and may be null: a tombstone
    key        string or binary, may be null
    headers    array<struct<key: string, value: binary>>, may be null
    topic      string; not needed with the option `topic`, which wins over the column
    partition  int; null: the partitioner chooses

Other columns are not looked at.  Rows come as Arrow batches and are parted by topic and partition, so that whole
columns go on to `Producer.send_many`.
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
ROW = "row"  # the number of a row in its task; no column of the sink has this name


class RowError(ValueError):
    """Rows that cannot be records."""


class Rows(NamedTuple):
    """Some that go to one topic, and to one partition or any."""

    topic: str
    partition: int | None
    values: pa.Array
    keys: pa.Array | None
    headers: list[list[Header]] | None
    numbers: pa.Array  # of the rows in their task


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """RowError for columns that are missing or of a wrong type."""
    types: dict[str, DataType] = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise RowError("required attribute 'value' not found: the rows need a column of that name, string or binary")
    if options.topic is None and "topic" not in types:
        raise RowError(f"topic option required when no 'topic' attribute is present. {USE_THE_OPTION}")
    for name, kinds, said in (
        ("topic", StringType, "a string"),
        ("key", TEXT_OR_BYTES, "a string or binary"),
        ("value", TEXT_OR_BYTES, "a string or binary"),
        ("partition", IntegerType, "an int"),
    ):
        if name in types and not isinstance(types[name], kinds):
            raise RowError(f"{name} attribute type must be {said}, not {types[name].simpleString()}")
    if "headers" in types and not _are_headers(types["headers"]):
        said = "an array<struct<key:string,value:binary>>"
        raise RowError(f"headers attribute type must be {said}, not {types['headers'].simpleString()}")


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return fields == [("key", StringType), ("value", BinaryType)]


def parted(batch: pa.RecordBatch, first: int, options: SinkOptions) -> Iterator[Rows]:
    """The rows of a batch, the first of which has this number, by where they go.  RowError."""
    names = set(batch.schema.names)
    columns = {name: batch.column(name) for name in ("value", "key", "headers", "topic", "partition") if name in names}
    columns[ROW] = pa.array(range(first, first + batch.num_rows), pa.int64())
    rows = pa.RecordBatch.from_pydict(columns)
    by_topic = [(options.topic, rows)] if options.topic is not None else _by(rows, "topic")
    for topic, of_topic in by_topic:
        if topic is None:
            where = of_topic.column(ROW)[0]
            raise RowError(f"null topic present in the data (row {where}). {USE_THE_OPTION}")
        for partition, some in _by(of_topic, "partition") if "partition" in names else [(None, of_topic)]:
            keys = some.column("key") if "key" in names else None
            if keys is not None and keys.null_count == len(keys):
                keys = None  # values alone go four times as fast
            headers = _headers(some) if "headers" in names else None
            yield Rows(topic, partition, some.column("value"), keys, headers, some.column(ROW))


def _by(rows: pa.RecordBatch, name: str) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """The rows by the values of a column, each in their order."""
    column = rows.column(name)
    values = pc.unique(column).to_pylist()
    for value in values:
        wanted = pc.is_null(column) if value is None else pc.equal(column, value)
        yield value, rows if len(values) == 1 else rows.filter(wanted)


def _headers(rows: pa.RecordBatch) -> list[list[Header]] | None:
    """Of each row; None if none has any."""
    column = rows.column("headers")
    if not len(pc.list_flatten(column)):
        return None
    found: list[list[Header]] = []
    for number, headers in enumerate(column.to_pylist()):
        found.append([(each["key"], each["value"]) for each in headers or ()])
        if any(name is None for name, _ in found[-1]):
            raise RowError(f"a header without a name in the data (row {rows.column(ROW)[number]})")
    return found
