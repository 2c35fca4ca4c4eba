"""Tests that every handler answers random requests of every version, and that the responses can be encoded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random

import pytest

from hmb.broker.errors import CloseConnection
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.messages import API_KEYS, api_name, request_class
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds
from tests.broker.calls import produce
from tests.broker.conftest import Asker
from tests.broker.groups.offset_calls import commit
from tests.reliability.requests import (
    COMPACTED,
    CONSUMER_GROUP,
    GROUP,
    SHARE_GROUP,
    STREAMS_GROUP,
    TOPIC,
    TRANSACTION,
    Generator,
    Known,
)
from tests.storage.conftest import batch

TRIES = 40  # random requests for each version


def empty_broker(ask: Asker) -> Known:
    """Do not send any request, so that the broker stays empty. Return no names."""
    return Known()


def used_broker(ask: Asker) -> Known:
    """Create topics, groups of both protocols, committed offsets and a transactional id.

    Return the names of all of these.
    """
    known = Known()
    for name, configs in ((TOPIC, {}), (COMPACTED, {"cleanup.policy": "compact"})):
        known.topic_ids.append(ask.broker.topics.create(name, 2, configs).id)
    ask(produce(batch(3)), 9)
    for key_type in (0, 1):
        ask(FindCoordinatorRequest(key="any", key_type=key_type), 1)
    commit(ask, {0: 1})
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"topics")
    joining = JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=6_000, protocol_type="consumer", protocols=[protocol], rebalance_timeout_ms=1
    )
    known.members.append(ask(joining, 1).member_id)
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=CONSUMER_GROUP,
        member_id="member",
        rebalance_timeout_ms=1,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    known.members.append(ask(heartbeat, 0).member_id)
    sharing = ShareGroupHeartbeatRequest(group_id=SHARE_GROUP, member_id="sharer", subscribed_topic_names=[TOPIC])
    known.members.append(ask(sharing, 1).member_id)
    owned: dict[str, list[TaskIds]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    part = StreamsGroupHeartbeatRequest.Topology.Subtopology(subtopology_id="0", source_topics=[TOPIC])
    topology = StreamsGroupHeartbeatRequest.Topology(subtopologies=[part])
    streaming = StreamsGroupHeartbeatRequest(
        group_id=STREAMS_GROUP, member_id="thread", rebalance_timeout_ms=1, topology=topology, **owned
    )
    known.members.append(ask(streaming, 0).member_id)
    producer = InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=60_000)
    known.producer_ids.append(ask(producer, 4).producer_id)
    return known


@pytest.mark.parametrize("make_state", [empty_broker, used_broker], ids=["fresh", "used"])
@pytest.mark.parametrize("api_key", API_KEYS, ids=api_name)
def test_every_request_gets_a_response_in_its_version(
    make_asker: Callable[..., Asker],
    caplog: pytest.LogCaptureFixture,
    api_key: ApiKey,
    make_state: Callable[[Asker], Known],
) -> None:
    """Every request gets a response in its version.

    Before a bug was fixed, DescribeGroups responses of versions 0 to 5 used a field that exists only in version 6. The
    broker could not encode these responses, and closed the connection.
    """
    caplog.set_level(logging.ERROR)
    cls = request_class(api_key)
    few = ("offsets_topic", "transaction_state_log", "share_coordinator_state_topic")
    ask = make_asker(**dict.fromkeys([f"{topic}_num_partitions" for topic in few], "2"))
    generator = Generator(Random(api_key), make_state(ask))
    for version in cls.versions:
        for _ in range(TRIES):
            request = generator.message(cls, version)
            ask.client = ClientConnection("test")  # After a Produce with acks=0 the old connection gets no response.
            try:
                ask(request, version)
            except CloseConnection as error:
                is_refused = isinstance(request, ProduceRequest) and request.acks == 0
                assert is_refused, f"v{version}: {error}: {caplog.text[-2000:]}"
