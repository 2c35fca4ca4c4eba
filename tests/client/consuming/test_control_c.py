"""Tests of Ctrl-C during a poll: the next poll returns the records that this poll did not return."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hmb.client import Consumer, TopicPartition
from hmb.client.consuming.fetcher import Fetcher
from hmb.records import encode_batch
from tests.client.consuming.scripted_log import RECORDS, Log
from tests.client.scripted_broker import ScriptedBroker

T0 = TopicPartition("t", 0)
SMALL_BATCHES = b"".join(encode_batch([record], base_offset=offset) for offset, record in enumerate(RECORDS))


def interrupting(at: bytes) -> Callable[[bytes], bytes]:
    """Return a deserializer that raises KeyboardInterrupt the first time that it gets the value `at`."""
    left = [at]

    def deserialize(data: bytes) -> bytes:
        if data in left:
            left.remove(data)
            raise KeyboardInterrupt
        return data

    return deserialize


def test_after_control_c_in_the_second_batch_the_next_poll_returns_the_first_batch() -> None:
    log = Log(SMALL_BATCHES, 4)
    with ScriptedBroker(log) as broker:
        consumer = Consumer(broker.address, "t", until="end", value_deserializer=interrupting(b"2"))
        with consumer, pytest.raises(KeyboardInterrupt):
            consumer.poll(10)
        assert consumer.position(T0) == 0  # If a group committed this position, no record would be lost.


def test_after_control_c_in_a_poll_the_next_poll_returns_all_records() -> None:
    with (
        ScriptedBroker(Log(SMALL_BATCHES, 4)) as broker,
        Consumer(broker.address, "t", until="end", value_deserializer=interrupting(b"2")) as consumer,
    ):
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(10)
        assert [record.value for record in consumer] == [b"0", b"1", b"2", b"3"]


def test_control_c_while_the_next_fetch_is_sent_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker,
        Consumer(broker.address, "t", until="end") as consumer,
    ):
        receive, post = Fetcher._receive, Fetcher.post

        def interrupted(fetcher: Fetcher) -> None:
            monkeypatch.setattr(Fetcher, "post", post)
            raise KeyboardInterrupt

        def received(fetcher: Fetcher, *arguments: object) -> object:
            monkeypatch.setattr(Fetcher, "post", interrupted)
            return receive(fetcher, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(Fetcher, "_receive", received)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(10)
        assert [record.value for record in consumer] == [b"0", b"1", b"2", b"3"]
