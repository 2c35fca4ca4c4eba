"""Tests of one connection to a broker: which version of a request it chooses, and how it reports failures."""

from __future__ import annotations

import http.server
import socket
import threading
from contextlib import suppress
from math import inf

import pytest

import hmb
from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.metadata import Cluster, Node
from hmb.client.reconnecting import LONGEST_PAUSE, AddressFailures
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request, Response
from tests.client.raw_server import raw_server
from tests.client.scripted_broker import Clock, HangUp, ScriptedBroker


def test_the_newest_version_that_both_sides_support_is_used(servers: str) -> None:
    host, _, port = servers.partition(":")
    with Connection(host, int(port)) as connection:
        assert connection.version_of(MetadataRequest) == MetadataRequest.versions[-1]
        assert connection.version_of(MetadataRequest, at_most=4) == 4
        response: MetadataResponse = connection.send(MetadataRequest(topics=None))
        assert [broker.port for broker in response.brokers] == [int(port)]


def test_an_older_broker_is_supported() -> None:
    with (
        ScriptedBroker(lambda request, version: None, {MetadataRequest: 1, ListOffsetsRequest: -1}) as broker,
        Connection("127.0.0.1", broker.port) as connection,
    ):
        assert connection.version_of(MetadataRequest) == 1
        assert not connection.supports(ListOffsetsRequest)
        with pytest.raises(KafkaError, match="has no LIST_OFFSETS API") as caught:
            connection.send(ListOffsetsRequest())
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_several_requests_may_be_in_flight() -> None:
    def answer(request: object, version: int) -> ListOffsetsResponse:
        assert isinstance(request, ListOffsetsRequest)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name=request.topics[0].name)])

    with ScriptedBroker(answer) as broker, Connection("127.0.0.1", broker.port) as connection:
        for name in ("a", "b"):
            connection.post(ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=name)]))
        assert connection.waiting == 2
        assert [connection.receive().topics[0].name for _ in range(2)] == ["a", "b"]
        assert connection.waiting == 0


def no_offsets(request: Request, version: int) -> ListOffsetsResponse:
    if isinstance(request, ListGroupsRequest):
        raise HangUp
    return ListOffsetsResponse()


@pytest.mark.parametrize("has_groups", [True, False])
def test_a_broker_that_closes_only_after_api_versions_gets_requests_of_version_0(has_groups: bool) -> None:
    def answer(request: Request, version: int) -> Response:
        return ListGroupsResponse() if has_groups and request.api_key == 16 else no_offsets(request, version)

    with ScriptedBroker(answer) as broker, Connection("127.0.0.1", broker.port) as connection:
        broker.hang_ups = inf
        assert connection.version_of(MetadataRequest) == 0
        assert connection.version_of(ProduceRequest) == 0
        assert connection.supports(JoinGroupRequest) is has_groups
        with pytest.raises(KafkaError, match="has no CREATE_TOPICS API"):
            connection.version_of(CreateTopicsRequest)
        response: MetadataResponse = connection.send(MetadataRequest(topics=[]))
        assert [it.port for it in response.brokers] == [broker.port]


def test_a_broker_that_closes_the_connection_once_gets_the_request_again() -> None:
    with ScriptedBroker(no_offsets) as broker, Connection("127.0.0.1", broker.port) as connection:
        broker.hang_ups = 1
        assert connection.version_of(MetadataRequest) == MetadataRequest.versions[-1]


def test_a_broker_that_closes_every_connection_is_not_treated_as_an_old_one() -> None:
    with (
        raw_server(lambda client: (client.recv(1024), None)[1]) as port,
        Connection("127.0.0.1", port) as connection,
        pytest.raises(ConnectionFailed, match="closed the connection"),
    ):
        connection.version_of(MetadataRequest)


def test_a_broker_with_too_many_connections_is_not_treated_as_an_old_one() -> None:
    with hmb.Broker(config={"max.connections": "1"}) as broker:
        host, _, port = broker.bootstrap_servers.partition(":")
        with Connection(host, int(port)) as first, Connection(host, int(port)) as second:
            assert first.version_of(MetadataRequest) > 0
            with pytest.raises(ConnectionFailed):
                second.version_of(MetadataRequest)


def test_a_broker_that_has_named_its_versions_is_never_treated_as_an_old_one() -> None:
    clock = Clock()
    known = AddressFailures(clock)
    with (
        ScriptedBroker(no_offsets) as broker,
        Connection("127.0.0.1", broker.port, address_failures=known) as connection,
    ):
        assert connection.version_of(MetadataRequest) > 0
        connection.close()
        broker.hang_ups = inf
        with pytest.raises(ConnectionFailed, match="closed the connection"):
            connection.version_of(MetadataRequest)
        broker.hang_ups = 0
        clock.now += LONGEST_PAUSE
        assert connection.version_of(MetadataRequest) > 0


def test_the_connections_of_a_client_share_a_broker_s_versions() -> None:
    with ScriptedBroker(no_offsets) as broker:
        cluster = Cluster(broker.address)
        assert cluster.version_of(MetadataRequest) > 0
        broker.hang_ups = inf
        with (
            cluster.connect(Node("127.0.0.1", broker.port)) as connection,
            pytest.raises(ConnectionFailed, match="closed the connection"),
        ):
            connection.version_of(MetadataRequest)
        cluster.close()


def test_no_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionFailed, match=f"nobody listens on 127.0.0.1:{port}"):
        Connection("127.0.0.1", port).send(ApiVersionsRequest())


def test_an_unknown_host() -> None:
    with pytest.raises(ConnectionFailed, match=r"no-such-host.invalid is not the name of a known host"):
        Connection("no-such-host.invalid", 9092).send(ApiVersionsRequest())


def test_a_server_that_does_not_answer() -> None:
    done = threading.Event()
    with raw_server(lambda client: (done.wait(), None)[1]) as port:
        with pytest.raises(ConnectionFailed, match=r"did not answer within 0\.05 s"):
            Connection("127.0.0.1", port, timeout=0.05).send(ApiVersionsRequest())
        done.set()


@pytest.mark.parametrize(
    "said",
    [b"HTTP/1.1 400 Bad\r\n\r\n", b"\x00\x00\x00\x04\xff\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x09abc"],
)
def test_a_server_of_another_protocol(said: bytes) -> None:
    def speak(client: socket.socket) -> None:
        client.recv(1024)
        client.sendall(said)

    with (
        raw_server(speak) as port,
        pytest.raises(ConnectionFailed, match=f"127.0.0.1:{port} does not speak Kafka's protocol"),
    ):
        Connection("127.0.0.1", port).send(ApiVersionsRequest())


def test_a_client_of_an_http_server_gets_an_error_at_once() -> None:
    """A client that connects to an HTTP server gets an error at once.

    An HTTP server does not respond before it receives a newline. The correlation id in the client's first request
    therefore contains newlines. Without these newlines, the client would wait until its timeout.
    """
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(ConnectionFailed, match=r"does not speak Kafka's protocol: .*; it looks like HTTP"):
            Connection("127.0.0.1", server.server_address[1], timeout=60.0).send(ApiVersionsRequest())
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("said", "guess"),
    [(b"\x15\x03\x03\x00\x02\x02\x46", "the listener uses TLS"), (b"HTTP/1.1 400 Bad", "it looks like HTTP")],
)
def test_the_error_of_a_known_other_protocol_names_it(said: bytes, guess: str) -> None:
    def speak(client: socket.socket) -> None:
        client.recv(1024)
        client.sendall(said)

    with raw_server(speak) as port, pytest.raises(ConnectionFailed, match=guess):
        Connection("127.0.0.1", port).send(ApiVersionsRequest())


def test_opens_again_after_a_failure() -> None:
    answers = iter([None, ListOffsetsResponse()])

    def answer(request: object, version: int) -> ListOffsetsResponse:
        found = next(answers)
        if found is None:
            raise OSError
        return found

    with ScriptedBroker(answer) as broker, Connection("127.0.0.1", broker.port) as connection:
        with pytest.raises(ConnectionFailed):
            connection.send(ListOffsetsRequest())
        assert not connection.is_open
        assert connection.send(ListOffsetsRequest()) == ListOffsetsResponse()


def test_the_time_limit_of_a_response_is_for_all_its_bytes() -> None:
    def trickle(client: socket.socket) -> None:
        with suppress(OSError):
            client.sendall(b"\x00\x01\x00\x00")
            while True:
                client.sendall(b"x")
                done.wait(0.01)

    done = threading.Event()
    with (
        raw_server(trickle) as port,
        pytest.raises(ConnectionFailed, match=r"did not answer within 0\.1 s"),
    ):
        Connection("127.0.0.1", port, timeout=0.1).send(ApiVersionsRequest())


def test_a_connection_that_was_closed_while_it_was_idle_is_opened_again_before_a_request_is_lost() -> None:
    with ScriptedBroker(no_offsets) as broker, Connection("127.0.0.1", broker.port) as connection:
        assert connection.send(ListOffsetsRequest()) == ListOffsetsResponse()
        broker.drop_connections()
        # `has_response` becomes True when the client notices that the broker has closed the connection.
        while not connection.has_response:
            pass
        assert connection.send(ListOffsetsRequest()) == ListOffsetsResponse()


def test_a_wait_for_a_response_may_be_shorter_than_the_connections_timeout() -> None:
    done = threading.Event()

    def never(request: Request, version: int) -> Response:
        done.wait()
        raise HangUp

    with ScriptedBroker(never) as broker, Connection("127.0.0.1", broker.port) as connection:
        with pytest.raises(ConnectionFailed, match=r"did not answer within 0\.05 s"):
            connection.send(ListOffsetsRequest(), timeout=0.05)
        done.set()


@pytest.mark.parametrize(("kind", "method"), [(Connection, "_read"), (socket.socket, "send")])
def test_a_request_that_ctrl_c_has_interrupted_leaves_no_bytes_in_the_connection(
    servers: str, kind: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    host, _, port = servers.partition(":")
    with Connection(host, int(port)) as connection:
        connection.send(MetadataRequest(topics=[]))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(kind, method, interrupted)
            connection.send(ListOffsetsRequest(replica_id=-1))
        assert isinstance(connection.send(MetadataRequest(topics=[])), MetadataResponse)


def test_to_wait_for_an_answer_on_a_closed_connection_is_an_error(servers: str) -> None:
    host, _, port = servers.partition(":")
    connection = Connection(host, int(port))
    connection.post(MetadataRequest(topics=[]))
    connection.close()
    with pytest.raises(ConnectionFailed, match="was closed before the response arrived"):
        connection.receive()


def test_a_response_in_flight_is_not_mistaken_for_that_of_another_request(servers: str) -> None:
    host, _, port = servers.partition(":")
    with Connection(host, int(port)) as connection:
        connection.post(MetadataRequest(topics=[]))
        with pytest.raises(ConnectionFailed, match="while 1 others had no response"):
            connection.send(ListOffsetsRequest(replica_id=-1))
        assert isinstance(connection.send(MetadataRequest(topics=[])), MetadataResponse)
