"""Tests of a broker with few file descriptors: the broker still serves all segments, topics and groups."""

from __future__ import annotations

import json
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hmb.client import Admin, Consumer, Producer, TopicPartition
from hmb.client.admin import CreatedTopic, NewTopic
from tests.waiting import until

LIMIT = 200  # the broker's limit of file descriptors
SEGMENTS = 200
TOPICS = 15
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)  # a request in version 0, without a client id
BROKER = [str(Path(sys.executable).with_name("hmb")), "broker", "--port", "0", "--json"]
SETTINGS = ["-X", "log.segment.bytes=200", "-X", "num.partitions=1", "-X", "group.initial.rebalance.delay.ms=0"]


@dataclass
class Limited:
    process: subprocess.Popen[str]
    servers: str

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Limited]:
    command = [*BROKER, "--data-dir", str(tmp_path / "data"), *SETTINGS]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit
    ) as process:
        assert process.stdout is not None
        broker = Limited(process, json.loads(process.stdout.readline())["bootstrap_servers"])
        yield broker
        process.terminate()
        _, errors = process.communicate(timeout=30)
        assert "Traceback" not in errors
        assert process.returncode == 0


def fill(servers: str) -> None:
    with Producer(servers, acks=1, linger_ms=0) as producer:
        for number in range(SEGMENTS):
            assert producer.send("events", b"%d" % number + bytes(150)).result(30).offset == number


@pytest.mark.external
def test_a_topic_of_many_segments_keeps_descriptors_free(limited: Limited) -> None:
    fill(limited.servers)
    assert limited.descriptors() < LIMIT
    with Admin(limited.servers) as admin:
        names = [f"topic{number}" for number in range(TOPICS)]
        create(admin, *(NewTopic(name, 3) for name in names))
        with Producer(limited.servers, acks=-1, linger_ms=0) as producer:
            sent = [producer.send(name, b"x", partition=p) for name in names for p in range(3)]
            assert {future.result(60).offset for future in sent} == {0}
        with Consumer(limited.servers, "events", group="g", auto_commit=False) as consumer:
            read: list[int] = []
            until(lambda: read.extend(r.offset for r in consumer.poll(1.0)) or len(read) == SEGMENTS, "all records")
            consumer.commit()
        assert read == list(range(SEGMENTS))
        assert admin.list_group_offsets("g")[TopicPartition("events", 0)].offset == SEGMENTS
        assert not any(admin.delete_topics(names).values())
    assert limited.descriptors() < LIMIT


@pytest.mark.external
def test_connections_take_no_descriptor_from_the_reserve(limited: Limited) -> None:
    fill(limited.servers)
    host, port = limited.servers.split(":")
    clients = [socket.create_connection((host, int(port)), timeout=30) for _ in range(LIMIT)]
    served = [client for client in clients if is_served(client)]
    assert 0 < len(served) < LIMIT
    for client in served[:4]:  # Close four connections, so that the admin client can connect to the broker.
        client.close()
    with Admin(limited.servers) as admin:
        create(admin, NewTopic("first", 1), NewTopic("second", 20))
        assert admin.delete_topics(["first", "second"]) == {"first": None, "second": None}
    with Producer(limited.servers, acks=-1) as producer:
        assert producer.send("events", b"x").result(60).offset == SEGMENTS
    for client in clients:
        client.close()


def create(admin: Admin, *topics: NewTopic) -> None:
    assert all(isinstance(made, CreatedTopic) for made in admin.create_topics(topics).values())


def is_served(client: socket.socket) -> bool:
    """Return whether the broker responds on this connection. Return False if the broker has closed it."""
    try:
        client.sendall(API_VERSIONS)
        return client.recv(4) != b""
    except ConnectionError:
        return False
