"""Sends bytes to a broker over a raw socket, and decodes the responses."""

from __future__ import annotations

import contextlib
import copy
import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from hmb.protocol.errors import ErrorCode, ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.messages import response_class
from hmb.protocol.messages.api_versions import ApiVersionsResponse
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from hmb.protocol.schema import Request, Struct

from .case import (
    NOBODYS_ID,
    SUPER_USER,
    Captured,
    Comparison,
    Made,
    Message,
    Raw,
    Step,
    Topic,
    TopicId,
    shared_versions,
)

HOST = "127.0.0.1"
CLIENT_ID = "same-bytes"
PREPARATION_SECONDS = 60.0
PATIENCE_SECONDS = 60.0  # the longest wait for background work of a broker
PAUSE_SECONDS = 0.02
CLOSED = "connection closed"
# the first bytes of an ApiVersions response in version 0
UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
SILENT = "no answer"
MAX_FRAME = 1 << 27
TOPICS_AT_ONCE = 200


class NothingCaptured(Exception):
    """Raised if a request needs a value that no earlier response of the comparison contains."""


class NotReady(Exception):
    """Raised if a broker fails while the test creates its topics and records."""


def encode(message: Message, version: int) -> bytes:
    """Encode a request as a frame, including the size of the frame."""
    if isinstance(message, Raw):
        return len(message.frame).to_bytes(4, "big") + message.frame
    header = RequestHeader(api_key=message.api_key, api_version=version, correlation_id=version, client_id=CLIENT_ID)
    frame = header.encode(message.header_version(version)) + message.encode(version)
    return len(frame).to_bytes(4, "big") + frame


def decode(frame: memoryview, api_key: int, version: int) -> object:
    """Decode a response. If HMB's classes cannot decode it, return a description of the failure instead."""
    expected = response_class(api_key)
    try:
        _, position = ResponseHeader.decode_prefix(frame, expected.header_version(version))
        if expected is ApiVersionsResponse and bytes(frame[position : position + 2]) == UNSUPPORTED_VERSION:
            version = 0
        return expected.decode(frame, version, position)
    except ProtocolError as error:
        return f"not decodable: {error}"


class Side:
    """One of the two compared brokers: HMB or Kafka."""

    def __init__(self, name: str, port: int, login_port: int | None = None) -> None:
        self.name = name
        self.port = port
        self.login_port = port if login_port is None else login_port  # the port of the listener that requires a login
        self.topic_ids: dict[str, UUID] = {}
        self.known: dict[object, str] = {}  # topic id -> its placeholder in comparisons

    def ask(self, request: Request, version: int | None = None) -> Any:
        """Send one request on a new connection, in the newest version by default, and return the response."""
        wire = Wire(self.port)
        try:
            version = shared_versions(request.api_key)[-1] if version is None else version
            wire.send(encode(request, version))
            answer = wire.receive(request.api_key, version, PREPARATION_SECONDS)
        finally:
            wire.close()
        if not isinstance(answer, Struct):
            raise NotReady(f"{self.name}, asked {request}: {answer}")
        return answer

    def create_topics(self, topics: Mapping[str, Topic]) -> None:
        """Create all topics, and wait until the broker reports each in its metadata."""
        names = list(topics)
        for first in range(0, len(names), TOPICS_AT_ONCE):
            request = CreateTopicsRequest()
            request.topics = [_creatable(name, topics[name]) for name in names[first : first + TOPICS_AT_ONCE]]
            for result in self.ask(request).topics:
                if result.error_code:
                    raise NotReady(f"{self.name} did not make {result.name}: {result.error_message}")
        self.await_topics(set(names))

    def await_topics(self, names: set[str]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = self.ask(MetadataRequest(topics=None)).topics
            self.topic_ids = {topic.name: topic.topic_id for topic in found}
            self.known = {id: f"<id of {name}>" for name, id in self.topic_ids.items()}
            if names <= self.topic_ids.keys() and not any(p.error_code for t in found for p in t.partitions):
                return
            time.sleep(PAUSE_SECONDS)
        raise NotReady(f"{self.name} does not know {sorted(names - self.topic_ids.keys())[:5]} ...")


def _creatable(name: str, topic: Topic) -> CreateTopicsRequest.CreatableTopic:
    config = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=topic.partitions,
        replication_factor=1,
        configs=[config(name=name, value=value) for name, value in topic.configs.items()],
    )


class Wire:
    """A connection to a broker. It sends bytes without a check, so the test can also send malformed requests."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), PREPARATION_SECONDS)
        self._stream = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # If the connection is closed, `receive` raises an error.
            self._socket.sendall(data)

    def receive(self, api_key: int, version: int, seconds: float) -> object:
        self._socket.settimeout(seconds)
        try:
            frame = read_frame(self._stream, MAX_FRAME)
        except TimeoutError:
            return SILENT
        except (OSError, ProtocolError):
            return CLOSED
        return CLOSED if frame is None else decode(frame, api_key, version)

    def log_in(self, user: str) -> None:
        """Log in with the mechanism PLAIN. Each user's password equals the user's name."""
        for request, version in (
            (SaslHandshakeRequest(mechanism="PLAIN"), 1),
            (SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}".encode()), 2),
        ):
            self.send(encode(request, version))
            answer: Any = self.receive(request.api_key, version, PREPARATION_SECONDS)
            if getattr(answer, "error_code", ErrorCode.NETWORK_EXCEPTION):
                raise NotReady(f"{user} cannot log in: {answer}")

    def hang_up(self) -> None:
        """Close the connection. Afterwards `receive` reports a closed connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


class Conversation:
    """The requests and responses that one comparison exchanges with one broker."""

    def __init__(self, side: Side, comparison: Comparison) -> None:
        self._side = side
        self._comparison = comparison
        self._wires: dict[str, Wire] = {}
        self._captured: dict[str, object] = {}

    def send(self, step: Step) -> None:
        message, version = self._comparison.message(step)
        if step.connection not in self._wires:
            self._wires[step.connection] = self._connect(step.connection)
        wire = self._wires[step.connection]
        try:
            wire.send(encode(self._filled(message), version))
        except NothingCaptured:  # A value from an earlier step is missing. That step reports why.
            wire.hang_up()

    def _connect(self, connection: str) -> Wire:
        user = self._comparison.case.user
        if user is None or connection == SUPER_USER:
            return Wire(self._side.port)
        wire = Wire(self._side.login_port)
        wire.log_in(user)
        return wire

    def receive(self, step: Step) -> object:
        """Return the response to a step's request.

        If the step has a condition `until`, repeat the request until its response meets the condition, or until
        PATIENCE_SECONDS have passed.
        """
        message, version = self._comparison.message(step)
        wire = self._wires[step.connection]
        deadline = time.monotonic() + PATIENCE_SECONDS
        answer = wire.receive(message.api_key, version, step.seconds)
        while step.until and isinstance(answer, Struct) and not step.until(answer) and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
            wire.send(encode(self._filled(message), version))
            answer = wire.receive(message.api_key, version, step.seconds)
        with contextlib.suppress(AttributeError):
            self._captured |= {name: capture(answer) for name, capture in step.capture.items()}
        return answer

    def known(self) -> Mapping[object, str]:
        """Map each value that only this broker uses, such as an id, to its placeholder for the comparison."""
        captured: dict[object, str] = {
            value: f"<{name}>" for name, value in self._captured.items() if isinstance(value, str)
        }
        return {**self._side.known, **captured} if captured else self._side.known

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def _filled(self, value: Any) -> Any:
        """Return a copy of `value` in which placeholders are replaced by this broker's values."""
        if isinstance(value, Struct):
            filled = copy.copy(value)
            filled.__dict__ = {name: self._filled(each) for name, each in vars(value).items()}
            return filled
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if isinstance(value, TopicId):
            return self._side.topic_ids.get(self._comparison.fill(value.name), NOBODYS_ID)
        if isinstance(value, Made):
            try:
                return value.make(self._captured)
            except KeyError:
                raise NothingCaptured from None
        if isinstance(value, Captured):
            if value.name not in self._captured:
                raise NothingCaptured
            return self._captured[value.name]
        return self._comparison.fill(value) if isinstance(value, str) else value


def both(conversations: Iterable[Conversation], step: Step) -> list[object]:
    """Send a step's request to both brokers, then read both responses. The brokers work at the same time."""
    conversations = list(conversations)
    for conversation in conversations:
        conversation.send(step)
    return [conversation.receive(step) for conversation in conversations]
