"""Tests of `send_many` with a broker: records from lists and from Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hmb.client import Consumer, Producer
from hmb.client.producing.columns import ROWS_AT_A_TIME
from hmb.client.producing.delivery import Range
from hmb.client.producing.partitioner import partition_of_key
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import ScriptedBroker


@pytest.fixture
def producer(servers: str) -> Iterator[Producer]:
    with Producer(servers, batch_size=4096) as producer:
        yield producer


def read(servers: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return partition, key and value of all records, sorted by partition and offset."""
    records = sorted(Consumer(servers, topic, until="end"), key=lambda it: (it.partition, it.offset))
    return [(it.partition, it.key, it.value) for it in records]


def test_values_have_the_offsets_of_their_ranges(servers: str, producer: Producer) -> None:
    values = [b"%d" % number for number in range(3 * ROWS_AT_A_TIME + 5)]
    ranges = producer.send_many("values", values).result(10)
    found = {(it.partition, it.offset): it.value for it in Consumer(servers, "values", until="end")}
    told = [found[place.partition, place.base_offset + n] for place in ranges for n in range(place.records)]
    assert told == values
    assert len({place.partition for place in ranges}) == 3


def test_keys_go_to_their_partitions_in_order(servers: str, producer: Producer) -> None:
    keys = [b"key%d" % (number % 7) for number in range(500)]
    values = [b"%d" % number for number in range(500)]
    deliveries = producer.send_many("keys", values, keys)
    assert sum(place.records for place in deliveries.result(10)) == 500
    rows = [(partition_of_key(key, 3), key, value) for key, value in zip(keys, values, strict=True)]
    expected = sorted(rows, key=lambda row: row[0])  # The sort is stable.
    assert read(servers, "keys") == expected


def test_nulls_headers_timestamps_and_a_partition(servers: str, producer: Producer) -> None:
    headers = [(("h", b"1"),), (), (("n", None),)]
    result = producer.send_many("all", [b"1", None, b"3"], [None, b"k", b""], 2, headers, [5, 6, 7]).result(10)
    assert result == [Range("all", 2, 0, 3)]
    records = list(Consumer(servers, "all", until="end"))
    got = [(it.partition, it.key, it.value, it.headers, it.timestamp) for it in records]
    assert got == [(2, None, b"1", headers[0], 5), (2, b"k", None, (), 6), (2, b"", b"3", headers[2], 7)]


@pytest.mark.parametrize("kind", ["binary", "string", "large_binary", "large_string"])
def test_arrow_columns(servers: str, producer: Producer, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    texts = ["a", "", None, "äöü", "e" * 300]
    values = pyarrow.array(texts, getattr(pyarrow, kind)())
    keys = pyarrow.chunked_array([["x", "1"], [], ["2", None, "4", "y"]], getattr(pyarrow, kind)())
    producer.send_many(f"arrow-{kind}", values, keys[1:6], partition=0).result(10)
    producer.send_many(f"arrow-{kind}", values[3:], partition=0).result(10)
    expected = [None if text is None else text.encode() for text in texts]
    assert read(servers, f"arrow-{kind}") == [
        *zip([0] * 5, [b"1", b"2", None, b"4", b"y"], expected, strict=True),
        (0, None, expected[3]),
        (0, None, expected[4]),
    ]


def test_an_empty_list(producer: Producer) -> None:
    assert producer.send_many("empty", []).result(10) == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([b"1", "2"],), TypeError, "value 1 must be bytes or None, not str"),
        (([b"1"], [2]), TypeError, "key 0 must be bytes or None, not int"),
        ((b"12",), TypeError, "values must be a list of bytes, not bytes; to send one record, use send"),
        (([b"1", b"2"], [b"k"]), ValueError, "there are 2 values, but 1 keys"),
        (([b"1"], None, None, None, [-5]), ValueError, "the timestamp -5 is not allowed"),
        (([b"1"], None, 3), KafkaError, "topic 'many' has no partition 3"),
    ],
)
def test_invalid_records_are_errors(producer: Producer, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        producer.send_many("many", *arguments)


def test_arrow_columns_of_numbers_are_refused(producer: Producer) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match="values must be an Arrow column of binary or string, not of int64"):
        producer.send_many("numbers", pyarrow.array([1, 2]))


def test_the_error_of_a_large_value_contains_the_number_of_queued_records(producer: Producer) -> None:
    values = [b"x"] * ROWS_AT_A_TIME + [b"x" * 2_000_000]
    what = f"{ROWS_AT_A_TIME} of {ROWS_AT_A_TIME + 1} records were added before this error:"
    with pytest.raises(KafkaError, match=what) as it:
        producer.send_many("too-large", values)
    assert it.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_the_error_of_a_full_buffer_contains_the_number_of_queued_records() -> None:
    with ScriptedBroker(lambda request, version: None) as broker:
        producer = Producer(broker.address, acks=1, buffer_memory=1000, max_block=0.01, batch_size=500)
        with pytest.raises(TimeoutError, match=r"\d+ of 100 records were added before this error: the buffer holds"):
            producer.send_many("t", [b"x" * 100] * 100)
        with pytest.raises(TimeoutError):
            producer.close(0)


def test_records_at_random_are_spread_one_by_one(servers: str) -> None:
    with Producer(servers, partitioner="random") as producer:
        producer.send_many("random", [b"x"] * 100).result(10)
    partitions = [partition for partition, _, _ in read(servers, "random")]
    assert min(partitions.count(number) for number in range(3)) > 5
