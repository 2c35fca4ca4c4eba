"""Tests that a broker with `threading=staged` behaves like one with a thread for each connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hmb.broker import BrokerServer
from hmb.broker.config.keys import ConfigError
from hmb.protocol.connection import ClientConnection
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.share_fetch import ShareFetchRequest
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from hmb.protocol.schema import Request
from tests.broker.conftest import Wire, as_bytes
from tests.broker.handlers.test_handlers import fetch, outcome, produce
from tests.broker.network.test_server import (
    make_topic,
    test_a_frame_that_the_client_cuts_off_is_not_an_error,
    test_a_long_poll_is_answered_by_the_next_produce,
    test_a_long_poll_without_news_ends_after_max_wait,
    test_an_internal_error_closes_one_connection_and_is_logged,
    test_hostile_bytes_close_their_connection_and_no_other,
    test_pipelined_requests_are_answered_in_order,
    test_produced_records_can_be_fetched,
    waiting_fetch,
)
from tests.storage.conftest import batch
from tests.waiting import until

__all__ = [  # Tests of test_server.py, which run in this module with the fixture `broker` below.
    "test_a_frame_that_the_client_cuts_off_is_not_an_error",
    "test_a_long_poll_is_answered_by_the_next_produce",
    "test_a_long_poll_without_news_ends_after_max_wait",
    "test_an_internal_error_closes_one_connection_and_is_logged",
    "test_hostile_bytes_close_their_connection_and_no_other",
    "test_pipelined_requests_are_answered_in_order",
    "test_produced_records_can_be_fetched",
]

Connect = Callable[[], Wire]
CONFIG = {"threading": "staged", "log.flush.acks.all": "false", "socket.request.max.bytes": "1000000"}


@pytest.fixture(params=["1", "3"])
def broker(request: pytest.FixtureRequest) -> Iterator[BrokerServer]:
    with BrokerServer(config={**CONFIG, "num.io.threads": request.param, "queued.max.requests": "2"}) as broker:
        yield broker


def framed(request: Request, version: int) -> bytes:
    return b"".join(map(as_bytes, ClientConnection("test").request(request, version)))


def answer(wire: Wire, request: Request, version: int) -> Any:
    """Read the next response, and decode it as the response to this request."""
    client = ClientConnection("test")
    client.request(request, version)
    frame = wire.frame()
    assert frame is not None, "connection closed"
    return client.receive(memoryview(frame))[1]


def test_a_pipeline_longer_than_every_channel_arrives_whole_and_in_order(connect: Connect) -> None:
    wires = [connect() for _ in range(3)]
    make_topic(wires[0])
    request = framed(produce(batch(1)), 9)
    for wire in wires:
        threading.Thread(target=wire.send, args=(request * 500,)).start()
    answers = [answer(wire, produce(batch(1)), 9) for _ in range(500) for wire in wires]
    offsets = [each.responses[0].partition_responses[0].base_offset for each in answers]
    assert sorted(offsets) == list(range(1500))
    for number in range(3):
        assert offsets[number::3] == sorted(offsets[number::3])


def test_requests_that_wait_take_no_handler(connect: Connect) -> None:
    waiting = [connect() for _ in range(4)]
    make_topic(waiting[0])
    for wire in waiting:
        wire.send(framed(waiting_fetch(0), 12))
    assert outcome(connect().ask(produce(batch(1)), 9)) == 0
    for wire in waiting:
        assert outcome(answer(wire, waiting_fetch(0), 12)) == 0


def waiting_share_fetch(wire: Wire) -> ShareFetchRequest:
    """Join a share group that reads the topic t, and return a ShareFetch request that waits up to 60 seconds."""
    joining = ShareGroupHeartbeatRequest(group_id="s", member_id="member", member_epoch=0, subscribed_topic_names=["t"])
    wire.ask(FindCoordinatorRequest(key="s"), 0)

    def joined() -> bool:
        response: Any = wire.ask(joining, 1)
        return not response.error_code

    until(joined, "the share group to accept the member")
    found: Any = wire.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 12)
    topic = ShareFetchRequest.FetchTopic(
        topic_id=found.topics[0].topic_id, partitions=[ShareFetchRequest.FetchTopic.FetchPartition()]
    )
    return ShareFetchRequest(group_id="s", member_id="member", max_wait_ms=60_000, max_records=1, topics=[topic])


def test_a_share_fetch_that_waits_takes_no_handler(broker: BrokerServer, connect: Connect) -> None:
    waiting, other = connect(), connect()
    make_topic(other)
    request = waiting_share_fetch(other)
    waiting.send(framed(request, 2))
    until(lambda: broker._stop.watchers._watchers, "the share fetch to wait")
    assert outcome(other.ask(produce(batch(1)), 9)) == 0
    (topic,) = answer(waiting, request, 2).responses
    assert [(it.first_offset, it.last_offset) for it in topic.partitions[0].acquired_records] == [(0, 0)]


def test_a_waiting_request_comes_after_those_before_it(connect: Connect) -> None:
    wire = connect()
    make_topic(wire)
    wire.send(framed(produce(batch(1)), 9) + framed(fetch(), 12))
    assert outcome(answer(wire, produce(batch(1)), 9)) == 0
    assert answer(wire, fetch(), 12).responses[0].partitions[0].high_watermark == 1


def test_answers_before_a_broken_request_are_sent(connect: Connect) -> None:
    wire = connect()
    good = framed(ApiVersionsRequest(), 0)
    wire.send(good * 3 + bytes.fromhex("0000000a 03e7 0000 00000001 ffff") + good)
    for _ in range(3):
        assert wire.frame() is not None
    assert wire.frame() is None


def test_a_stop_answers_waiting_requests(broker: BrokerServer, connect: Connect) -> None:
    wire = connect()
    make_topic(wire)
    wire.send(framed(waiting_fetch(0), 12))
    until(lambda: broker._stop.watchers._watchers, "the fetch to wait")
    broker.stop()
    assert wire.frame() is not None


@pytest.mark.parametrize("threads", [1, 9])
def test_the_number_of_handlers_follows_its_setting(broker: BrokerServer, connect: Connect, threads: int) -> None:
    handlers = broker._server._handlers  # type: ignore[union-attr]
    assert handlers is not None
    handlers.resize(threads)
    wire = connect()
    for _ in range(20):
        assert wire.ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]
    running = [thread for thread in threading.enumerate() if thread.name.startswith("api-handler")]
    assert len(running) >= threads


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(ConfigError, match="threading=pool: the value must be one of connection, staged"):
        BrokerServer(config={"threading": "pool"})
