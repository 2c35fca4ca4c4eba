"""Tests of the rows that are written to a topic: the accepted columns, the errors, and the grouping by destination."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow")
types = pytest.importorskip("pyspark.sql.types")

from hmb.spark.options import SinkOptions  # noqa: E402
from hmb.spark.writing.rows import RowError, by_destination, check_schema  # noqa: E402

TO_T = SinkOptions("localhost", topic="t")
BY_COLUMN = SinkOptions("localhost")


@pytest.mark.parametrize(
    ("schema", "options", "complaint"),
    [
        ("key string", TO_T, "required attribute 'value' not found"),
        ("value string", BY_COLUMN, "topic option required when no 'topic' attribute is present"),
        ("value int", TO_T, "value attribute type must be a string or binary, not int"),
        ("value string, key long", TO_T, "key attribute type must be a string or binary, not bigint"),
        ("value string, topic int", BY_COLUMN, "topic attribute type must be a string, not int"),
        ("value string, partition long", TO_T, "partition attribute type must be an int, not bigint"),
        ("value string, headers map<string,binary>", TO_T, "headers attribute type must be an array<struct<key:string"),
        ("value string, headers array<struct<key:string,value:string>>", TO_T, "headers attribute type must be"),
    ],
)
def test_columns_that_cannot_be_written(schema: str, options: SinkOptions, complaint: str) -> None:
    with pytest.raises(RowError, match=complaint):
        check_schema(_schema(schema), options)


def test_columns_that_can_be_written() -> None:
    all_of_them = (
        "key binary, value string, topic string, partition int, headers array<struct<key:string,value:binary>>"
    )
    check_schema(_schema(all_of_them + ", other double"), BY_COLUMN)
    check_schema(_schema("value binary"), TO_T)


def test_rows_are_grouped_by_topic_and_partition_in_order() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "value": ["0", "1", "2", "3", "4"],
            "topic": ["a", "b", "a", "a", "b"],
            "partition": pa.array([1, None, None, 1, None], pa.int32()),
        }
    )
    parts = {(each.topic, each.partition): each for each in by_destination(batch, 100, BY_COLUMN)}
    assert {where: each.values.to_pylist() for where, each in parts.items()} == {
        ("a", 1): ["0", "3"],
        ("a", None): ["2"],
        ("b", None): ["1", "4"],
    }
    assert parts["b", None].numbers.to_pylist() == [101, 104]


def test_the_option_topic_wins() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["0", "1"], "topic": ["a", None]})
    assert [each.topic for each in by_destination(batch, 0, TO_T)] == ["t"]


def test_a_null_topic_names_its_row() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["0", "1"], "topic": ["a", None]})
    with pytest.raises(RowError, match=r"null topic present in the data \(row 8\)"):
        list(by_destination(batch, 7, BY_COLUMN))


def test_headers() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    some = pa.array([[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, []], kind)
    (rows,) = by_destination(pa.RecordBatch.from_pydict({"value": ["0", "1", "2"], "headers": some}), 0, TO_T)
    assert rows.headers == [[("a", b"1"), ("a", None)], [], []]
    (rows,) = by_destination(pa.RecordBatch.from_pydict({"value": ["0"], "headers": pa.array([None], kind)}), 0, TO_T)
    assert rows.headers is None
    nameless = pa.array([[], [{"key": None, "value": b"1"}]], kind)
    with pytest.raises(RowError, match=r"row 1 contains a header without a name"):
        list(by_destination(pa.RecordBatch.from_pydict({"value": ["0", "1"], "headers": nameless}), 0, TO_T))


def _schema(text: str) -> types.StructType:
    """Parse a schema without a JVM. Spark's own parser would need one."""
    plain = {
        "string": types.StringType(),
        "binary": types.BinaryType(),
        "int": types.IntegerType(),
        "long": types.LongType(),
        "double": types.DoubleType(),
        "map<string,binary>": types.MapType(types.StringType(), types.BinaryType()),
        "array<struct<key:string,value:binary>>": _headers(types.BinaryType()),
        "array<struct<key:string,value:string>>": _headers(types.StringType()),
    }
    columns = [column.split(" ", 1) for column in text.split(", ")]
    return types.StructType([types.StructField(name, plain[kind]) for name, kind in columns])


def _headers(value: types.DataType) -> types.ArrayType:
    return types.ArrayType(types.StructType().add("key", types.StringType()).add("value", value))
