"""Tests of at-least-once writes: if a record is not delivered, the error names the record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hmb

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from hmb.client.admin import NewTopic  # noqa: E402
from hmb.spark.options import SinkOptions  # noqa: E402
from hmb.spark.writing.sending import UndeliveredError, deliver  # noqa: E402


def batches(*values: list[bytes | None], **columns: list[object]) -> Iterator[pa.RecordBatch]:
    for each in values:
        yield pa.RecordBatch.from_pydict({"value": pa.array(each, pa.binary()), **columns})


def records(servers: str, topic: str) -> list[hmb.ConsumerRecord]:
    with hmb.Consumer(servers, topic, offset="earliest", until="end") as consumer:
        return list(consumer)


def test_all_rows_are_delivered_when_it_returns(servers: str, topic: str) -> None:
    options = SinkOptions(servers, topic=topic)
    assert deliver(options, 0, batches([b"a", None], [b"b"] * 5000)) == 5002
    assert sorted(it.value or b"" for it in records(servers, topic)) == [b"", b"a", *[b"b"] * 5000]


def test_writing_no_rows_requires_no_broker() -> None:
    assert deliver(SinkOptions("localhost:1", topic="t"), 0, batches()) == 0


def test_a_partition_column(servers: str, topic: str) -> None:
    deliver(SinkOptions(servers, topic=topic), 0, batches([b"a", b"b"], partition=pa.array([2, 0], pa.int32())))
    assert {(it.partition, it.value) for it in records(servers, topic)} == {(2, b"a"), (0, b"b")}


def test_the_error_of_a_missing_partition_names_the_row(servers: str, topic: str) -> None:
    rows = batches([b"a", b"b"], partition=pa.array([2, 9], pa.int32()), key=["x", "y"])
    with pytest.raises(UndeliveredError, match=rf"row 1 of task 4 \(topic '{topic}', key 'y'\) was not delivered: .*9"):
        deliver(SinkOptions(servers, topic=topic), 4, rows)


def test_a_record_that_is_too_large_names_the_row(servers: str, topic: str) -> None:
    with pytest.raises(UndeliveredError, match=r"row 3 of task 0 .* was not delivered: .*max.request.size"):
        deliver(SinkOptions(servers, topic=topic), 0, batches([b"a", b"b"], [b"c", bytes(2_000_000)]))


def test_a_record_that_the_broker_refuses_names_the_row(servers: str, topic: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.create_topics([NewTopic("compacted", 1, configs={"cleanup.policy": "compact"})])
    rows = batches([b"a"] * 3, key=pa.array(["x", None, "z"]))
    with pytest.raises(UndeliveredError, match=r"row 1 of task 0 \(topic 'compacted'\) was not delivered: .*key"):
        deliver(SinkOptions(servers, topic="compacted"), 0, rows)
