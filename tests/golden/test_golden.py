"""Tests of the golden files: the bytes decode to the messages, and the messages encode to the bytes."""

import io
from pathlib import Path

import pytest

from hmb.protocol.annotate import annotate_request, annotate_response, render
from hmb.protocol.connection import ServerConnection
from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import frame, read_frame
from hmb.protocol.headers import ResponseHeader
from hmb.protocol.messages import API_KEYS
from hmb.protocol.primitives import Part
from tests.golden.files import load
from tests.protocol.test_framing import Trickle

FILES = {path.stem: load(path) for path in sorted(Path(__file__).parent.glob("*.txt"))}
ANSWERED = {name: sides for name, sides in FILES.items() if "response" in sides}


def byte_by_byte(wire: bytes) -> memoryview:
    stream = io.BufferedReader(Trickle(wire))
    body = read_frame(stream, len(wire))
    assert body is not None
    assert read_frame(stream, 0) is None
    return body


def on_the_wire(parts: list[Part]) -> bytes:
    return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


@pytest.mark.parametrize("name", FILES)
def test_request_is_understood(name: str) -> None:
    request = FILES[name]["request"]
    assert ServerConnection().receive(byte_by_byte(request.wire)) == (request.header, request.message)


@pytest.mark.parametrize("name", FILES)
def test_request_is_written(name: str) -> None:
    request = FILES[name]["request"]
    version = request.header.api_version
    header = request.header.encode(request.message.header_version(version))
    assert on_the_wire(frame([header, *request.message.encode_parts(version)])) == request.wire


@pytest.mark.parametrize("name", ANSWERED)
def test_response_is_understood(name: str) -> None:
    request, response = FILES[name]["request"], FILES[name]["response"]
    answers, version, body = type(response.message), request.header.api_version, byte_by_byte(response.wire)
    header, position = ResponseHeader.decode_prefix(body, answers.header_version(version))
    assert header == response.header == ResponseHeader(correlation_id=request.header.correlation_id)
    assert answers.decode(body, version, position) == response.message


@pytest.mark.parametrize("name", ANSWERED)
def test_response_is_written(name: str) -> None:
    request, response = FILES[name]["request"], FILES[name]["response"]
    assert on_the_wire(ServerConnection().respond(request.header, response.message)) == response.wire


@pytest.mark.parametrize("name", FILES)
def test_annotations(name: str) -> None:
    request = FILES[name]["request"]
    assert "\n".join(render(annotate_request(memoryview(request.wire)))) == request.text
    if response := FILES[name].get("response"):
        answers, version = type(response.message), request.header.api_version
        assert "\n".join(render(annotate_response(answers, version, memoryview(response.wire)))) == response.text


@pytest.mark.parametrize("name", FILES)
def test_trailing_and_missing_bytes(name: str) -> None:
    request = FILES[name]["request"]
    received = ServerConnection().receive(memoryview(request.wire[4:] + b"\0\1\2"))
    assert received == (request.header, request.message)
    with pytest.raises(ProtocolError, match="byte"):
        ServerConnection().receive(memoryview(request.wire[4:-1]))


def test_all_apis_are_here() -> None:
    assert {sides["request"].message.api_key for sides in FILES.values()} == set(API_KEYS)
