"""Tests of how a consumer handles a partition leader that is slow, fails or changes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from hmb.client import ConnectionFailed, Consumer
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.schema import Request, Response
from hmb.records import encode_batch
from tests.client.consuming.scripted_log import RECORDS, Late, Log, poll_all
from tests.client.scripted_broker import HangUp, ScriptedBroker


def test_a_late_response_is_requested_again() -> None:
    late = Late(Log(encode_batch(RECORDS), 4), 1, 20)
    with ScriptedBroker(late) as broker:
        with Consumer(broker.address, "t", request_timeout=0.2, max_wait_ms=10) as consumer:
            assert poll_all(consumer, 4) == [b"0", b"1", b"2", b"3"]
        late.over.set()


def test_a_broker_that_is_late_for_too_long_is_reported() -> None:
    late = Late(Log(encode_batch(RECORDS), 4), 100, 20)
    with ScriptedBroker(late) as broker:
        with (
            Consumer(broker.address, "t", request_timeout=0.1, max_wait_ms=10, retry_for=0.2) as consumer,
            pytest.raises(ConnectionFailed, match=f"{broker.address} did not answer within"),
        ):
            poll_all(consumer, 1)
        late.over.set()


def test_poll_returns_in_time_while_a_broker_is_silent() -> None:
    late = Late(Log(encode_batch(RECORDS), 4), 100, 20)
    with ScriptedBroker(late) as broker:
        with Consumer(broker.address, "t") as consumer:
            began = time.monotonic()
            assert consumer.poll(0.1) == []
            assert time.monotonic() - began < 5
        late.over.set()


def lead(number_of: dict[str, int], *brokers: ScriptedBroker) -> Callable[[MetadataRequest], MetadataResponse]:
    """Return a function that answers Metadata requests.

    The dict `number_of` maps the name of each topic to a number n. In each answer, the broker `brokers[n]` leads
    partition 0 of this topic.
    """
    topic, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
    return lambda request: MetadataResponse(
        brokers=[broker(node_id=node, host="127.0.0.1", port=it.port) for node, it in enumerate(brokers)],
        topics=[
            topic(name=name, partitions=[topic.MetadataResponsePartition(partition_index=0, leader_id=leader)])
            for name, leader in number_of.items()
        ],
    )


def test_a_leader_that_moves_is_followed() -> None:
    with ScriptedBroker(Log(encode_batch(RECORDS[:2]), 4)) as old, ScriptedBroker(Log(b"", 4)) as new:
        old.metadata = new.metadata = lead({"t": 0}, old, new)
        with Consumer(old.address, "t", max_wait_ms=10) as consumer:
            assert poll_all(consumer, 2) == [b"0", b"1"]
            new._answer = Log(encode_batch(RECORDS[2:], base_offset=2), 4)
            old._answer = Log(b"", 4, *[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1000)
            old.metadata = new.metadata = lead({"t": 1}, old, new)
            assert poll_all(consumer, 2) == [b"2", b"3"]


def test_a_leader_that_dies_does_not_delay_other_partitions() -> None:
    def dies(request: Request, version: int) -> Response | None:
        if isinstance(request, FetchRequest):
            raise HangUp
        return Log(b"", 4)(request, version)

    with ScriptedBroker(dies) as dying, ScriptedBroker(Log(encode_batch(RECORDS), 4)) as other:
        dying.metadata = other.metadata = lead({"a": 0, "t": 1}, dying, other)
        with Consumer(other.address, "a", "t", max_wait_ms=10, retry_for=0.5, offset=0) as consumer:
            assert poll_all(consumer, 4) == [b"0", b"1", b"2", b"3"]
            with pytest.raises(ConnectionFailed, match=f"{dying.address} closed the connection"):
                poll_all(consumer, 1)
