"""Tests of the embedded broker's settings for groups, with real clients."""

from __future__ import annotations

import pytest

import hmb
from tests.waiting import until


def test_the_broker_tells_its_members_when_to_send_a_heartbeat() -> None:
    settings = {"group.consumer.heartbeat.interval.ms": "1s", "group.consumer.min.heartbeat.interval.ms": "1s"}
    with hmb.Broker(config=settings) as broker:
        broker.produce("t", "a")
        requests = broker.requests
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g", group_protocol="consumer") as consumer:
            until(lambda: consumer.poll(0.1), "the record")
        responses = [each.response for each in requests.of("CONSUMER_GROUP_HEARTBEAT")]
        intervals = {response.heartbeat_interval_ms for response in responses if response.error_code == 0}  # type: ignore[union-attr]
    assert 1000 in intervals


@pytest.mark.parametrize("session_timeout", [0.999, 5.001])
def test_a_session_timeout_outside_the_limits_is_refused(session_timeout: float) -> None:
    limits = {"group.min.session.timeout.ms": "1s", "group.max.session.timeout.ms": "5s"}
    with hmb.Broker(config=limits) as broker:
        broker.produce("t", "a")
        options = {"group": "g", "session_timeout": session_timeout, "heartbeat_interval": 0.1}
        with (
            hmb.Consumer(broker.bootstrap_servers, "t", **options) as consumer,  # type: ignore[arg-type]
            pytest.raises(hmb.KafkaError, match="INVALID_SESSION_TIMEOUT"),
        ):
            until(lambda: consumer.poll(0.1))


@pytest.mark.parametrize("session_timeout", [1.0, 5.0])
def test_a_session_timeout_at_a_limit_is_accepted(session_timeout: float) -> None:
    limits = {"group.min.session.timeout.ms": "1s", "group.max.session.timeout.ms": "5s"}
    with hmb.Broker(config=limits) as broker:
        broker.produce("t", "a")
        options = {"group": "g", "session_timeout": session_timeout, "heartbeat_interval": 0.1}
        with hmb.Consumer(broker.bootstrap_servers, "t", **options) as consumer:  # type: ignore[arg-type]
            until(lambda: consumer.poll(0.1), "the record")
