"""Tests of checks before a record is queued: invalid settings, and records that can never be sent, raise errors."""

from __future__ import annotations

from typing import Any

import pytest

from hmb.client import ConnectionFailed, Producer
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.client.producing.produce_scripts import Script
from tests.client.scripted_broker import ScriptedBroker


@pytest.mark.parametrize("record", [{"value": b"x" * 2**20}, {"value": None, "headers": [("h", b"x" * 2**20)]}])
def test_a_record_above_max_request_size_is_refused_before_it_is_sent(record: dict[str, Any]) -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(KafkaError, match=", 1,048,576 bytes: ") as caught:
        producer.send("t", **record)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_the_broker_accepts_the_largest_record_that_the_client_allows(servers: str) -> None:
    with Producer(servers) as producer:
        assert producer.send("largest", b"x" * (2**20 - 81), partition=0).result().offset == 0


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ({"value": "text"}, TypeError, r"value must be bytes or None, not str; a text has \.encode\(\)"),
        ({"value": b"", "key": 1}, TypeError, "key must be bytes or None, not int"),
        ({"value": b"", "headers": [("h", "text")]}, TypeError, "header 'h' must be bytes or None, not str"),
        ({"value": b"", "headers": [(b"h", b"")]}, TypeError, "the name of a header must be a str, not bytes"),
        ({"value": b"", "headers": [("\ud800", b"")]}, ValueError, "surrogates not allowed"),
        ({"value": b"", "timestamp": 2**63}, ValueError, "the timestamp 9223372036854775808 is not allowed"),
        ({"value": b"", "timestamp": 2**63 - 1}, ValueError, "the timestamp 9223372036854775807 is not allowed"),
        ({"value": b"", "timestamp": -5}, ValueError, "the timestamp -5 is not allowed"),
        (
            {"value": b"", "timestamp": 1.5},
            TypeError,
            r"a timestamp must be an int \(milliseconds since 1970\), not float",
        ),
    ],
)
def test_an_invalid_record_is_an_error_of_send(record: dict[str, Any], error: type[Exception], message: str) -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(error, match=message):
        producer.send("a", **record)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "bad\udcff", "x" * 250])
def test_an_illegal_name_of_a_topic_is_refused_without_asking_a_broker(name: str) -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(KafkaError, match="is not a topic name") as caught:
        producer.send(name, b"x")
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_wrong_address_is_an_error_at_once() -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(ConnectionFailed, match=r"nobody listens on 127.0.0.1:1"):
        producer.send("t", b"x")


@pytest.mark.parametrize(("name", "value"), [("acks", 2), ("compression", "rar")])
def test_invalid_settings_of_the_producer(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Producer("127.0.0.1:1", **{name: value})  # type: ignore[arg-type]


def test_a_level_that_the_codec_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="gzip has no compression level 99"):
        Producer("127.0.0.1:1", compression="gzip", compression_level=99)


def test_a_closed_producer_sends_no_requests() -> None:
    with ScriptedBroker(Script()) as broker:
        producer = Producer(broker.address)
        producer.send("t", b"x").result(10)
        producer.close()
        asked: list[object] = []
        broker.metadata = asked.append  # type: ignore[assignment]
        for topic in ("t", "new"):
            with pytest.raises(RuntimeError, match="the producer is closed"):
                producer.send(topic, b"x")
    assert not asked
