"""Tests of simulated faults of requests: clients get errors, late responses or no responses, or lose the connection."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

import hmb
from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.testing.errors import FaultError
from hmb.testing.faults.requests import Faults


class Client:
    """A client with one connection. The client never sends a failed request again."""

    def __init__(self, broker: hmb.Broker, client_id: str = "test") -> None:
        host, port = broker.bootstrap_servers.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.stream = self.socket.makefile("rb")
        self.protocol = ClientConnection(client_id)

    def ask(self, request: Any, version: int) -> Any:
        """Return the response, or None if the broker closes the connection."""
        self.socket.sendall(b"".join(map(bytes, self.protocol.request(request, version))))
        frame = read_frame(self.stream, 1 << 20)
        return None if frame is None else self.protocol.receive(memoryview(frame))[1]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.close()
        self.socket.close()


def test_a_producer_repeats_a_batch_that_got_an_error(broker: hmb.Broker, faults: Faults) -> None:
    broker.create_topic("t")
    fault = faults.add("produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    with hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"a").result(timeout=30)
    assert fault.count == 2
    assert [each.value for each in broker.records("t")] == [b"a"]  # The requests with errors appended no records.


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_cut_connection_loses_no_record_and_makes_no_copy(broker: hmb.Broker, faults: Faults, cut: Any) -> None:
    broker.create_topic("t")
    fault = faults.add("PRODUCE", cut=cut, times=1)
    with hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"a").result(timeout=30)
    assert fault.count == 1
    assert [each.value for each in broker.records("t")] == [b"a"]


def test_an_error_selects_a_topic_and_leaves_other_topics_alone(broker: hmb.Broker, faults: Faults) -> None:
    broker.create_topic("t")
    broker.create_topic("other")
    faults.add("PRODUCE", topic="t", error="TOPIC_AUTHORIZATION_FAILED")
    with hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("other", b"a").result(timeout=30)
        with pytest.raises(hmb.KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            producer.send("t", b"a").result(timeout=30)


def test_a_fault_selects_a_partition(broker: hmb.Broker, faults: Faults) -> None:
    broker.create_topic("t", partitions=2)
    faults.add("PRODUCE", topic="t", partition=1, error="TOPIC_AUTHORIZATION_FAILED")
    with hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"a", partition=0).result(timeout=30)
        with pytest.raises(hmb.KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            producer.send("t", b"a", partition=1).result(timeout=30)


def test_a_fault_begins_with_the_nth_request_and_ends_after_its_times(broker: hmb.Broker, faults: Faults) -> None:
    faults.add("HEARTBEAT", error="REBALANCE_IN_PROGRESS", nth=2, times=1)
    with Client(broker) as client:
        codes = [client.ask(HeartbeatRequest(group_id="g", member_id="m"), 0).error_code for _ in range(3)]
    assert codes[1] == 27  # REBALANCE_IN_PROGRESS
    assert 27 not in (codes[0], codes[2])


def test_a_fault_selects_a_client_id(broker: hmb.Broker, faults: Faults) -> None:
    faults.add("LIST_GROUPS", client_id="bad", cut="before")
    with Client(broker, "good") as good, Client(broker, "bad") as bad:
        assert good.ask(ListGroupsRequest(), 0) is not None
        assert bad.ask(ListGroupsRequest(), 0) is None


def test_a_dropped_response_never_arrives_and_the_connection_stays(broker: hmb.Broker, faults: Faults) -> None:
    faults.add("LIST_GROUPS", drop=True, times=1)
    with Client(broker) as client:
        request = client.protocol.request(ListGroupsRequest(), 0, expects_response=False)
        client.socket.sendall(b"".join(map(bytes, request)))
        assert client.ask(ListGroupsRequest(), 0) is not None  # The fault does not change this request.


def test_a_delay_and_a_throttle_time(broker: hmb.Broker, faults: Faults) -> None:
    faults.add("LIST_GROUPS", delay=0.2, throttle_ms=77)
    with Client(broker) as client:
        begin = time.monotonic()
        assert client.ask(ListGroupsRequest(), 1).throttle_time_ms == 77
        assert time.monotonic() - begin >= 0.2


def test_a_stop_of_the_broker_ends_a_delay(broker: hmb.Broker, faults: Faults) -> None:
    fault = faults.add("LIST_GROUPS", delay=60)
    with Client(broker) as client:
        client.socket.sendall(b"".join(map(bytes, client.protocol.request(ListGroupsRequest(), 0))))
        deadline = time.monotonic() + 30
        while not fault.count and time.monotonic() < deadline:
            time.sleep(0.01)
        begin = time.monotonic()
        broker.stop()
        assert time.monotonic() - begin < 30


def test_faults_stay_after_a_restart_of_the_broker(broker: hmb.Broker, faults: Faults) -> None:
    faults.add("LIST_GROUPS", cut="before")
    broker.restart()
    with Client(broker) as client:
        assert client.ask(ListGroupsRequest(), 0) is None


def test_a_broker_without_faults_has_its_own_handlers(broker: hmb.Broker, faults: Faults) -> None:
    """Without faults, the broker's table of handlers contains no wrapper of a handler."""
    assert broker.handlers == dict(HANDLERS)
    with faults.during("FETCH", delay=0.1):
        assert broker.handlers[ApiKey.FETCH] is not HANDLERS[ApiKey.FETCH]
    first, second = faults.add("FETCH", drop=True), faults.add("FETCH", delay=1)
    faults.remove(first)
    assert broker.handlers[ApiKey.FETCH] is not HANDLERS[ApiKey.FETCH]
    faults.remove(second)
    assert broker.handlers == dict(HANDLERS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"api": "PRODUCES", "drop": True}, "no API has the name 'PRODUCES'"),
        ({"api": "PRODUCE", "error": "NO_SUCH"}, "no error has the name 'NO_SUCH'"),
        ({"api": "HEARTBEAT", "topic": "t", "drop": True}, "HEARTBEAT requests contain no topic"),
        ({"api": "METADATA", "topic": "t", "partition": 0, "drop": True}, "METADATA requests contain no partition"),
        ({"api": "WRITE_TXN_MARKERS", "throttle_ms": 1}, "WRITE_TXN_MARKERS responses contain no throttle time"),
        ({"api": "PRODUCE", "drop": True, "takes_effect": True}, "'takes_effect' requires the parameter 'error'"),
        ({"api": "PRODUCE", "partition": 0, "drop": True}, "the parameter 'partition' requires the parameter 'topic'"),
        ({"api": "PRODUCE"}, "the fault has no effect"),
        ({"api": "PRODUCE", "cut": "between"}, "the value must be 'before' or 'after'"),
        ({"api": "PRODUCE", "drop": True, "nth": 0}, "'nth' and 'times' must be 1 or more"),
    ],
)
def test_a_fault_that_cannot_exist_is_refused(faults: Faults, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(FaultError, match=message):
        faults.add(**arguments)


def test_clear_in_a_block_ends_its_fault(broker: hmb.Broker, faults: Faults) -> None:
    """A call of `clear` inside a fault's `with` block removes the fault.

    At the end of the block, `during` removes the fault a second time. This must not raise an error.
    """
    with faults.during("HEARTBEAT", error="NOT_COORDINATOR"):
        faults.clear()
    assert faults.added == []
    assert broker.handlers[ApiKey.HEARTBEAT] is HANDLERS[ApiKey.HEARTBEAT]


def test_one_of_two_faults_with_the_same_values_is_removed(faults: Faults) -> None:
    first, second = (faults.add("HEARTBEAT", error="NOT_COORDINATOR") for _ in range(2))
    faults.remove(second)
    assert [each is first for each in faults.added] == [True]
