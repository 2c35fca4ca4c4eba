"""Tests of the two ends of a connection, without a network: each end reads the messages of the other end."""

import io
from collections.abc import Iterable

import pytest

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection, ServerConnection, UnsupportedVersion
from hmb.protocol.errors import ErrorCode, ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages import API_KEYS, request_class, response_class
from hmb.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.primitives import Part
from hmb.protocol.schema import Request, Response


def received(parts: Iterable[Part]) -> memoryview:
    """Return the content of the frame that the other end receives."""
    stream = io.BytesIO(b"".join(bytes(part) for part in parts if not hasattr(part, "size")))
    frame = read_frame(stream, 1 << 20)
    assert frame is not None
    assert not stream.read()
    return frame


@pytest.mark.parametrize(
    ("request_class", "response_class", "version"),
    [(request_class(key), response_class(key), v) for key in API_KEYS for v in request_class(key).versions],
)
def test_request_and_response(request_class: type[Request], response_class: type[Response], version: int) -> None:
    client, server = ClientConnection("me"), ServerConnection()
    header, request = server.receive(received(client.request(request_class(), version)))
    assert (header.api_key, header.api_version, header.client_id) == (request_class.api_key, version, "me")
    assert request == request_class()
    answer = received(server.respond(header, response_class()))
    assert client.receive(answer) == (header.correlation_id, response_class())


def test_headers_on_the_wire() -> None:
    client = ClientConnection("me")
    client.request(MetadataRequest(), 0)
    assert received(client.request(MetadataRequest(), 8)).hex(" ") == (
        "00 03 00 08 00 00 00 01 00 02 6d 65 00 00 00 00 01 00 00"
    )
    assert received(client.request(MetadataRequest(), 9)).hex(" ") == (
        "00 03 00 09 00 00 00 02 00 02 6d 65 00 01 01 00 00 00"
    )
    header = RequestHeader(api_key=3, api_version=9, correlation_id=2)
    assert received(ServerConnection().respond(header, MetadataResponse())).hex(" ").startswith("00 00 00 02 00 00")


def test_responses_arrive_in_order() -> None:
    client, server = ClientConnection(None), ServerConnection()
    frames = [received(client.request(MetadataRequest(), version)) for version in (0, 9, 13)]
    headers = [server.receive(frame)[0] for frame in frames]
    for header in headers:
        assert client.receive(received(server.respond(header, MetadataResponse())))[0] == header.correlation_id
    with pytest.raises(ProtocolError, match="but no request waits"):
        client.receive(received(server.respond(headers[0], MetadataResponse())))


def test_a_response_to_another_request() -> None:
    client, server = ClientConnection(None), ServerConnection()
    client.request(MetadataRequest(), 0)
    client.request(MetadataRequest(), 0)
    with pytest.raises(ProtocolError, match="request 1 arrived, but the response to request 0 is expected"):
        client.receive(received(server.respond(RequestHeader(correlation_id=1), MetadataResponse(), version=0)))


def test_produce_without_acks_expects_no_response() -> None:
    client, server = ClientConnection(None), ServerConnection()
    client.request(ProduceRequest(acks=0), 3, expects_response=False)
    header, _ = server.receive(received(client.request(MetadataRequest(), 1)))
    assert client.receive(received(server.respond(header, MetadataResponse())))[0] == 1


@pytest.mark.parametrize(
    ("api_key", "version", "message"),
    [
        (ApiKey.METADATA, 14, "^Metadata version 14 is not supported; supported versions: 0 to 13$"),
        (ApiKey.METADATA, -1, "^Metadata version -1 is not supported; supported versions: 0 to 13$"),
        (99, 0, "^the API with key 99 is not supported$"),
        (-1, 0, "^the API with key -1 is not supported$"),
    ],
)
def test_unknown_apis_and_versions(api_key: int, version: int, message: str) -> None:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=5, client_id="me")
    with pytest.raises(UnsupportedVersion, match=message) as caught:
        ServerConnection().receive(memoryview(header.encode(2) + b"whatever comes next"))
    assert caught.value.header == header


def test_api_versions_of_the_future_is_answered_in_version_0() -> None:
    client, server = ClientConnection("new"), ServerConnection()
    sent = bytearray(received(client.request(ApiVersionsRequest(), 4)))
    sent[2:4] = b"\x00\x63"  # The request now claims version 99.
    with pytest.raises(UnsupportedVersion) as caught:
        server.receive(memoryview(sent))
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)],
    )
    parts = server.respond(caught.value.header, answer, version=0)
    assert received(parts).hex(" ") == "00 00 00 00 00 23 00 00 00 01 00 12 00 00 00 04"
    assert client.receive(received(parts)) == (0, answer)


def test_bytes_after_a_request_as_librdkafka_2_12_sends_them() -> None:
    frame = bytes(received(ClientConnection("me").request(MetadataRequest(), 13))) + b"\0\0\0"
    _, request = ServerConnection().receive(memoryview(frame))
    assert request == MetadataRequest()


@pytest.mark.parametrize("size", range(10))
def test_a_header_cut_short(size: int) -> None:
    frame = received(ClientConnection("me").request(MetadataRequest(), 0))[:size]
    with pytest.raises(ProtocolError, match="RequestHeader"):
        ServerConnection().receive(frame)
