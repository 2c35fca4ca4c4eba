"""Load on a broker: it counts answers, and ends where the broker says no."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.load import repeated as load
from hmb.bench.load.repeated import PRODUCE_VERSION, Load, produce_request
from hmb.bench.peers import topics
from hmb.protocol.errors import ErrorCode

WANTED = [(produce_request("t", 0, 10, 100), PRODUCE_VERSION)]


def test_answers_are_counted() -> None:
    with hmb.Broker(config={"log.flush.acks.all": "false"}) as broker:
        topics.create(broker.bootstrap_servers, "t")
        with closing(Load(broker.bootstrap_servers, WANTED * 2)) as two:
            answers = two.run(0.1)
            assert answers > 0 and len(two.latencies()) == answers
        assert topics.end_offset(broker.bootstrap_servers, "t") >= 10 * (answers + 2)


def test_a_topic_that_is_not_there_yet_is_waited_for() -> None:
    """Kafka answers NOT_LEADER_OR_FOLLOWER for a moment to who produces to a topic right after its creation."""
    with hmb.Broker(config={"auto.create.topics.enable": "false"}) as broker:
        later = threading.Timer(0.1, topics.create, (broker.bootstrap_servers, "t"))
        later.start()
        with closing(Load(broker.bootstrap_servers, WANTED)) as one:
            assert len(one.lines) == 1
        later.join()


def test_an_error_that_stays_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "PATIENCE", 0.0)
    with (
        hmb.Broker(config={"auto.create.topics.enable": "false"}) as broker,
        pytest.raises(peers.PeerFailed, match=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name),
    ):
        Load(broker.bootstrap_servers, WANTED)
