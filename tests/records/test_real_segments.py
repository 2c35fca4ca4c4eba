"""Tests with segments of Kafka 0.8.2.2 and 4.3.0. Kafka's own producers and librdkafka sent the records."""

from pathlib import Path

import pytest

from hmb.records import (
    Codec,
    ControlType,
    TimestampType,
    assign_offsets,
    decode_marker,
    encode_message_set,
    iter_batches,
    read_records,
)

SEGMENTS = Path(__file__).parent / "segments"
CODECS = [codec.name.lower() for codec in Codec]


def segment(name: str) -> bytes:
    return (SEGMENTS / f"{name}.log").read_bytes()


@pytest.mark.parametrize("codec", CODECS[:4])
def test_kafka_082(codec: str) -> None:
    records = list(read_records(segment(f"kafka082-{codec}")))
    assert [(r.offset, r.timestamp, r.key) for r in records] == [(n, -1, None) for n in range(60)]
    assert [r.value for r in records] == [
        b"key%d\tline %d of some text to be compressed" % (n, n) for n in range(1, 61)
    ]
    assert {batch.codec.name.lower() for batch in iter_batches(segment(f"kafka082-{codec}"))} == {codec}


def test_kafka_082_appends_the_same_bytes() -> None:
    """HMB and Kafka 0.8.2.2 append the same message sets of a producer. The bytes of both logs are equal."""
    stored = segment("kafka082-none")
    sent = encode_message_set(list(read_records(stored)), 0)
    assert assign_offsets(sent, 0).data == stored


def test_kafka_082_lz4_has_the_wrong_header_checksum() -> None:
    (wrapper,) = iter_batches(segment("kafka082-lz4"))
    _, value = wrapper.key_and_value()
    assert bytes(value[:7]) == bytes.fromhex("04224d18 60 40 1a")


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_43(codec: str) -> None:
    records = list(read_records(segment(f"kafka43-{codec}")))
    assert [(r.offset, r.key, r.value) for r in records] == [
        (n - 1, b"key%d" % n, b"line %d of some text to be compressed" % n) for n in range(1, 61)
    ]
    (batch,) = iter_batches(segment(f"kafka43-{codec}"))
    assert (batch.codec.name.lower(), batch.last_sequence - batch.base_sequence) == (codec, 59)


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka(codec: str) -> None:
    records = list(read_records(segment(f"librdkafka-{codec}")))
    assert [(r.offset, r.timestamp) for r in records] == [(n, 1_700_000_000_000 + 10 * n) for n in range(50)]
    assert [r.key for r in records] == [b"k%d" % n if n % 3 else None for n in range(50)]
    assert [r.value for r in records] == [f"value {n} é".encode() if n % 5 else None for n in range(50)]
    assert [r.headers for r in records] == [(("h1", b"v"), ("h2", None)) if n % 7 == 0 else () for n in range(50)]


def test_transactions() -> None:
    batches = list(iter_batches(segment("kafka43-transactions")))
    assert [batch.is_control for batch in batches] == [False, True] * 3
    assert {batch.is_transactional for batch in batches} == {True}
    markers = [decode_marker(next(batch.records())).control_type for batch in batches if batch.is_control]
    assert markers == [ControlType.COMMIT, ControlType.ABORT, ControlType.COMMIT]
    assert [record.offset for record in read_records(segment("kafka43-transactions"))] == [0, 1, 2, 4, 5, 6, 8, 9, 10]


def test_log_append_time() -> None:
    (batch,) = iter_batches(segment("kafka43-log-append-time"))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in batch.records()} == {batch.max_timestamp}
