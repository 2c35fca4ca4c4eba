"""Tests of the client with servers that behave wrongly: each call ends within 20 seconds, and errors state the reason.

Producers, consumers and admin clients connect to the same servers. Some of these servers are not Kafka brokers. One
server damages the responses of a broker.
"""

from __future__ import annotations

import math
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

import pytest

import hmb
from hmb.client import Admin, Connection, ConnectionFailed, Consumer, Producer, SimpleConsumer, TopicPartition
from hmb.client.admin import ConfigResource, NewTopic, ResourceType
from hmb.client.backoff import RETRY_PAUSE
from hmb.protocol.connection import ServerConnection
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.messages import API_KEYS
from hmb.protocol.messages.api_versions import ApiVersionsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.records import encode_batch
from tests.client.consuming.scripted_log import RECORDS, Log
from tests.client.producing.produce_scripts import Script
from tests.client.raw_server import raw_server
from tests.client.scripted_broker import HangUp, ScriptedBroker

CLIENT_TIMEOUT = 0.3  # seconds; the timeout of the clients
BOUND = 20.0  # seconds; each test takes much less
# A seed decides which bytes of the responses are damaged.
each_seed = pytest.mark.parametrize("seed", range(int(os.environ.get("HMB_TEST_SEEDS", "3"))))


def produce(address: str) -> None:
    with Producer(address, request_timeout=CLIENT_TIMEOUT, delivery_timeout=1.0, max_block=1.0) as producer:
        producer.send("t", b"1").result(BOUND)


def consume(address: str) -> None:
    with Consumer(address, "t", until="end", request_timeout=CLIENT_TIMEOUT, retry_for=0.5) as consumer:
        list(consumer)


def consume_in_a_group(address: str) -> None:
    with Consumer(address, "t", group="g", until="end", request_timeout=CLIENT_TIMEOUT, retry_for=0.5) as consumer:
        consumer.poll(1.0)


def administer(address: str) -> None:
    with Admin(address, request_timeout=CLIENT_TIMEOUT) as admin:
        admin.list_topics()


def fetch(address: str) -> None:
    with SimpleConsumer(address, timeout=CLIENT_TIMEOUT) as consumer:
        consumer.fetch("t", 0, 0)


CLIENTS = [produce, consume, consume_in_a_group, administer, fetch]
T0 = TopicPartition("t", 0)
QUESTIONS: list[Callable[[Admin], object]] = [
    lambda admin: admin.describe_topics(["t"]),
    lambda admin: admin.create_topics([NewTopic("u")]),
    lambda admin: admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t")]),
    lambda admin: admin.list_groups(),
    lambda admin: admin.describe_groups(["g"]),
    lambda admin: admin.list_group_offsets("g"),
    lambda admin: admin.list_offsets({T0: "latest"}),
    lambda admin: admin.delete_records({T0: 0}),
    lambda admin: admin.describe_cluster(),
    lambda admin: admin.describe_log_dirs(),
]
each_client = pytest.mark.parametrize("use", CLIENTS)


def hang_up(client: socket.socket) -> None:
    client.recv(1024)


def say_nothing(client: socket.socket) -> None:
    while client.recv(1024):
        pass


def speak_html(client: socket.socket) -> None:
    client.recv(1024)
    client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def claim_gigabytes(client: socket.socket) -> None:
    client.recv(1024)
    client.sendall(b"\x7f\xff\xff\xff" + bytes(100))


def answer_with_zeros(client: socket.socket) -> None:
    client.recv(1024)
    client.sendall(b"\0\0\0\x10" + bytes(16))


def dribble(client: socket.socket) -> None:
    """Send a response of 1,000 bytes slowly, one byte at a time."""
    client.recv(1024)
    with suppress(OSError):
        for byte in (b"\0", b"\0", b"\x03", b"\xe8", *[b"\0"] * 1_000):
            client.sendall(byte)
            time.sleep(0.01)


@each_client
@pytest.mark.parametrize(
    "serve", [hang_up, say_nothing, speak_html, claim_gigabytes, answer_with_zeros, dribble], ids=lambda it: it.__name__
)
def test_a_server_that_is_not_a_broker(use: Callable[[str], None], serve: Callable[[socket.socket], None]) -> None:
    started = time.monotonic()
    with raw_server(serve) as port, pytest.raises(ConnectionFailed, match=f"127.0.0.1:{port}"):
        use(f"127.0.0.1:{port}")
    assert time.monotonic() - started < BOUND


@each_client
def test_a_broker_that_does_not_exist(use: Callable[[str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionFailed, match=f"127.0.0.1:{port}"):
        use(f"127.0.0.1:{port}")
    with pytest.raises(ConnectionFailed, match=r"nowhere\.invalid"):
        use("nowhere.invalid:9092")


class Damage:
    """A proxy that changes, drops or adds random bytes in responses."""

    def __init__(self) -> None:
        self.target = 0  # the broker's port
        self._lock = threading.Lock()  # guards the random generator and the count of intact responses
        self._chance, self._spared = random.Random(), math.inf

    def begin(self, seed: int) -> None:
        """Leave up to five responses unchanged. After that, damage most responses."""
        with self._lock:
            self._chance, self._spared = random.Random(seed), seed % 6

    def serve(self, client: socket.socket) -> None:
        threading.Thread(target=self._requests, args=(client.dup(),), daemon=True).start()

    def _requests(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.target)) as broker:
            back = threading.Thread(target=self._answers, args=(broker, client), daemon=True)
            back.start()
            with suppress(OSError):
                while data := client.recv(1 << 16):
                    broker.sendall(data)
            with suppress(OSError):
                broker.shutdown(socket.SHUT_RDWR)
            back.join()

    def _answers(self, broker: socket.socket, client: socket.socket) -> None:
        with suppress(OSError, ProtocolError), broker.makefile("rb") as stream:
            while (frame := read_frame(stream, 1 << 24)) is not None:
                client.sendall(self._damaged(bytearray(len(frame).to_bytes(4, "big") + frame)))
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _damaged(self, wire: bytearray) -> bytes:
        with self._lock:
            self._spared -= 1
            if self._spared >= 0 or self._chance.random() < 0.2:
                return bytes(wire)
            at = self._chance.randrange(len(wire))
            some = slice(at, at + self._chance.randrange(1, 9))
            match self._chance.randrange(3):
                case 0:
                    wire[at] = self._chance.randrange(256)
                case 1:
                    del wire[some]
                case _:
                    wire[at:at] = wire[some]
            return bytes(wire)


@pytest.fixture(scope="module")
def damage() -> Iterator[tuple[Damage, str]]:
    """Yield the proxy and its address. The broker advertises this address as its own."""
    damage = Damage()
    with socket.create_server(("127.0.0.1", 0)) as free:
        damage.target = free.getsockname()[1]
    with raw_server(damage.serve) as port:
        address = f"127.0.0.1:{port}"
        config = {"log.flush.acks.all": "false", "advertised.listeners": f"PLAINTEXT://{address}"}
        with hmb.Broker(port=damage.target, config=config):
            with Producer(address) as producer:
                producer.send("t", b"1").result()
            yield damage, address


@each_client
@each_seed
def test_damaged_responses_raise_errors_of_this_library_or_have_no_effect(
    damage: tuple[Damage, str], use: Callable[[str], None], seed: int
) -> None:
    """If responses are damaged, each call of the client succeeds or raises an error of this library.

    No thread waits forever.
    """
    started = time.monotonic()
    damage[0].begin(seed)
    with suppress(ConnectionFailed, KafkaError, TimeoutError):
        use(damage[1])
    assert time.monotonic() - started < BOUND


@each_seed
def test_damaged_responses_to_further_requests(damage: tuple[Damage, str], seed: int) -> None:
    for number, ask in enumerate(QUESTIONS):
        with suppress(ConnectionFailed, KafkaError), Admin(damage[1], request_timeout=CLIENT_TIMEOUT) as admin:
            damage[0].begin(seed * len(QUESTIONS) + number)
            ask(admin)
    with suppress(ConnectionFailed, KafkaError), SimpleConsumer(damage[1], timeout=CLIENT_TIMEOUT) as consumer:
        damage[0].begin(seed)
        consumer.offsets_before("t", 0, -1)


def test_after_an_outage_a_topic_may_be_unknown_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage of the broker, a consumer waits until the broker knows the topic again.

    A broker that has just started can report a topic as unknown. The consumer raises an error if the topic stays
    unknown for `GONE_AFTER` seconds. The outage itself does not count towards this time.
    """
    monkeypatch.setattr("hmb.client.consuming.partition_errors.GONE_AFTER", 3 * RETRY_PAUSE)
    outage = [True] * 5
    log = Log(encode_batch(RECORDS), len(RECORDS), *outage, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with ScriptedBroker(log) as broker, Consumer(broker.address, "t", until="end") as consumer:
        assert [record.value for record in consumer] == [record.value for record in RECORDS]


def break_off(client: socket.socket) -> None:
    """Answer ApiVersions. Close the connection in the middle of the next response."""
    protocol = ServerConnection()
    keys = [ApiVersionsResponse.ApiVersion(api_key=key, max_version=0) for key in API_KEYS]
    with client.makefile("rb") as stream:
        for response in (ApiVersionsResponse(api_keys=keys), MetadataResponse()):
            frame = read_frame(stream, 1 << 20)
            assert frame is not None
            wire = b"".join(cast("list[bytes]", protocol.respond(protocol.receive(frame)[0], response)))
            client.sendall(wire if isinstance(response, ApiVersionsResponse) else wire[:-1])


def test_a_broker_that_dies_in_the_middle_of_an_answer_is_still_a_broker() -> None:
    """If a broker dies during a response, the error must not claim that the server is not a Kafka broker."""
    with (
        raw_server(break_off) as port,
        Connection("127.0.0.1", port) as connection,
        pytest.raises(ConnectionFailed, match=f"a response of 127.0.0.1:{port} cannot be decoded: stream ends inside"),
    ):
        connection.send(MetadataRequest(topics=[]))


def test_a_broker_that_has_named_its_versions_counts_as_reached() -> None:
    """If a connection breaks after the response to ApiVersions, the client tries again, because the address is correct.

    A wrong address is reported at once.
    """
    troubles = [HangUp()]
    with ScriptedBroker(Script()) as broker, Producer(broker.address, retry_backoff=0.01) as producer:
        answer = broker.metadata

        def metadata(request: MetadataRequest) -> MetadataResponse:
            if troubles:
                raise troubles.pop()
            return answer(request)

        broker.metadata = metadata
        assert producer.send("t", b"1").result().offset == 0
