"""Tests of metadata: addresses, and leaders of partitions."""

from __future__ import annotations

import pytest

from hmb.client.connection import ConnectionFailed
from hmb.client.metadata import Cluster, Node, parse_servers
from hmb.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("127.0.0.1:9092", [Node("127.0.0.1", 9092)]),
        ("a:1, b:2", [Node("a", 1), Node("b", 2)]),
        ("localhost", [Node("localhost", 9092)]),
        ("[::1]:9093,[::1]", [Node("::1", 9093), Node("::1", 9092)]),
    ],
)
def test_addresses(text: str, nodes: list[Node]) -> None:
    assert parse_servers(text) == nodes


@pytest.mark.parametrize("text", ["", ":9092", "a:", "a:b", "a:0", "a:65536", "a:-1", "a:1,,b:2", "a:\u0661"])
def test_an_invalid_address(text: str) -> None:
    with pytest.raises(ValueError, match="write host:port"):
        parse_servers(text)


def test_a_topic_and_its_leaders(servers: str) -> None:
    cluster = Cluster(servers)
    with pytest.raises(KafkaError, match="there is no topic 'metadata'") as caught:
        cluster.topic("metadata")
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = cluster.topic("metadata", create=True)
    assert topic.leaders == dict.fromkeys(range(3), parse_servers(servers)[0])
    assert topic in Cluster(servers).topics()


def test_any_address_that_answers_is_enough(servers: str) -> None:
    assert Cluster(f"127.0.0.1:1,{servers}").topics() == Cluster(servers).topics()


def test_the_error_names_every_address_without_a_response() -> None:
    with pytest.raises(ConnectionFailed, match=r"nobody listens on 127.0.0.1:1; nobody listens on 127.0.0.1:2"):
        Cluster("127.0.0.1:1,127.0.0.1:2").topics()


def test_a_thread_waits_for_the_metadata_lock_only_for_a_limited_time(servers: str) -> None:
    cluster = Cluster(servers, timeout=0.01)
    with cluster._lock:  # as if another thread held the lock while it waited for a response
        for ask in (cluster.topics, lambda: cluster.topic("t")):
            with pytest.raises(ConnectionFailed, match=r"no broker answered within 0\.02 s"):
                ask()
        cluster.forget("t")
        cluster.close()  # `close` does not wait for a response that may never arrive.
