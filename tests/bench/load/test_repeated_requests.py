"""Tests of the class `Load`: it counts responses, and raises an error when a response contains an error."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.load import repeated_requests
from hmb.bench.load.repeated_requests import PRODUCE_VERSION, Load, produce_request
from hmb.bench.peers import topics
from hmb.protocol.errors import ErrorCode

REQUESTS = [(produce_request("t", 0, 10, 100), PRODUCE_VERSION)]


def test_responses_are_counted() -> None:
    with hmb.Broker(config={"log.flush.acks.all": "false"}) as broker:
        topics.create(broker.bootstrap_servers, "t")
        with closing(Load(broker.bootstrap_servers, REQUESTS * 2)) as two:
            responses = two.run(0.1)
            assert responses > 0 and len(two.latencies()) == responses
            two.forget_latencies()
            assert two.latencies() == []
        assert topics.end_offset(broker.bootstrap_servers, "t") >= 10 * (responses + 2)


def test_load_waits_for_a_topic_that_does_not_exist_yet() -> None:
    """If the topic does not exist yet, the class `Load` sends the request again until the topic exists.

    Kafka may answer NOT_LEADER_OR_FOLLOWER directly after the topic is created. `Load` then also repeats the request.
    """
    with hmb.Broker(config={"auto.create.topics.enable": "false"}) as broker:
        later = threading.Timer(0.1, topics.create, (broker.bootstrap_servers, "t"))
        later.start()
        with closing(Load(broker.bootstrap_servers, REQUESTS)) as one:
            assert len(one.connections) == 1
        later.join()


def test_an_error_that_stays_ends_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_requests, "NEW_TOPIC_TIMEOUT", 0.0)
    with (
        hmb.Broker(config={"auto.create.topics.enable": "false"}) as broker,
        pytest.raises(peers.PeerFailed, match=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name),
    ):
        Load(broker.bootstrap_servers, REQUESTS)
