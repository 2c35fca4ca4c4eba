"""Tests of at-least-once writes: if a record is not delivered, the error names the record."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hmb

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, StructField, StructType  # noqa: E402

from hmb.client.admin import NewTopic, raised  # noqa: E402
from hmb.client.connection import ConnectionFailed  # noqa: E402
from hmb.spark.options import SinkOptions  # noqa: E402
from hmb.spark.writing.once import deliver_once  # noqa: E402
from hmb.spark.writing.sending import UndeliveredError, deliver  # noqa: E402
from hmb.spark.writing.sink import batch_writer, stream_writer  # noqa: E402


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


@contextmanager
def restarting(directory: Path) -> Iterator[str]:
    """Yield the address of a broker that is stopped. The broker starts again after two seconds."""
    broker = hmb.Broker(directory).start()
    servers = broker.bootstrap_servers
    with hmb.Admin(servers) as admin:
        raised(admin.create_topics([NewTopic("t", 1)])["t"])
    broker.stop()
    again = hmb.Broker(directory, port=int(servers.rpartition(":")[2]))
    timer = threading.Timer(2.0, again.start)
    timer.start()
    try:
        yield servers
    finally:
        timer.join()
        again.stop()


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_task_waits_for_a_broker_that_restarts(tmp_path: Path, exactly_once: bool) -> None:
    """A task waits for a broker that restarts.

    Each task creates a new producer. Before a bug was fixed, this producer did not wait for the broker, so the task
    failed at once and the streaming query ended.
    """
    with restarting(tmp_path) as servers:
        options = SinkOptions(servers, topic="t", exactly_once=exactly_once)
        if exactly_once:
            assert deliver_once(options, "query", 0, 0, batches([b"a", b"b"])) == 2
        else:
            assert deliver(options, 0, batches([b"a", b"b"])) == 2
        assert [it.value for it in records(servers, "t")] == [b"a", b"b"]


def test_the_writer_of_a_stream_waits_for_a_broker_that_restarts(tmp_path: Path) -> None:
    """The writer of a stream waits for a broker that restarts.

    Spark calls the function `stream_writer` for each batch. With the option exactlyOnce, the function checks that the
    broker supports transactions, so the function must wait until the broker answers.
    """
    schema = StructType([StructField("value", BinaryType())])
    with restarting(tmp_path) as servers:
        stream_writer(SinkOptions(servers, topic="t", exactly_once=True), schema, overwrite=False)


def test_without_a_broker_a_task_fails_after_max_block() -> None:
    options = SinkOptions("127.0.0.1:1", topic="t", producer={"max_block": 0.3})
    with pytest.raises(ConnectionFailed, match=r"127[.]0[.]0[.]1:1"):
        deliver(options, 0, batches([b"a"]))


def test_a_batch_query_without_a_broker_fails_at_once() -> None:
    """A batch query fails at once if it reaches no broker, because the address is probably wrong.

    The driver does not wait for kafka.max.block.ms.
    """
    schema = StructType([StructField("value", BinaryType())])
    with pytest.raises(ConnectionFailed, match=r"127[.]0[.]0[.]1:1"):
        batch_writer(SinkOptions("127.0.0.1:1", topic="t"), schema, overwrite=False)


def test_a_partition_column(servers: str, topic: str) -> None:
    deliver(SinkOptions(servers, topic=topic), 0, batches([b"a", b"b"], partition=pa.array([2, 0], pa.int32())))
    assert {(it.partition, it.value) for it in records(servers, topic)} == {(2, b"a"), (0, b"b")}


def test_the_error_of_a_missing_partition_names_the_row(servers: str, topic: str) -> None:
    rows = batches([b"a", b"b"], partition=pa.array([2, 9], pa.int32()), key=["x", "y"])
    with pytest.raises(UndeliveredError, match=rf"row 1 of task 4 \(topic '{topic}', key 'y'\) was not delivered: .*9"):
        deliver(SinkOptions(servers, topic=topic), 4, rows)


def test_a_record_that_is_too_large_names_the_row(servers: str, topic: str) -> None:
    with pytest.raises(UndeliveredError, match=r"row 3 of task 0 .* was not delivered: .*kafka[.]max[.]request[.]size"):
        deliver(SinkOptions(servers, topic=topic), 0, batches([b"a", b"b"], [b"c", bytes(2_000_000)]))


def test_a_record_that_the_broker_refuses_names_the_row(servers: str, topic: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.create_topics([NewTopic("compacted", 1, configs={"cleanup.policy": "compact"})])
    rows = batches([b"a"] * 3, key=pa.array(["x", None, "z"]))
    with pytest.raises(UndeliveredError, match=r"row 1 of task 0 \(topic 'compacted'\) was not delivered: .*key"):
        deliver(SinkOptions(servers, topic="compacted"), 0, rows)
