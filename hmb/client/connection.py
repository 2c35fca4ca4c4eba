"""One connection to one broker: sends any request, decodes any answer.

A Kafka connection is a pipe with two rules. Answers come in the order of the requests, so a client may send several
requests before it reads the first answer (`post`, `post`, `receive`, `receive`); `send` is one of each. And every
request says which version of its API it speaks, so the two sides have to agree on one first: a new client asks with
ApiVersions, and takes the highest version that both know (KIP-35). Brokers before 0.10 do not know that question and
close the connection; they are spoken to in versions 0, which is what 0.8.2 knows. But a broker that is being stopped
closes connections too, and to take it for an old one would cost the records their timestamps and headers. So a broker
counts as old only when it has never answered the question, answers an old request, and hangs up on the question again.

The socket is all that lives here: bytes and messages are the business of `hmb.protocol`. Whatever goes wrong with
the connection closes it and raises `ConnectionFailed`; the next request opens a new one, or fails at once if that was
tried a moment ago (`reconnecting`). `timeout` holds for an answer as a whole: one that comes byte by byte is late, too.
A connection that the broker has closed while nothing was asked (it was idle for long, or the broker restarted) is
noticed before the next request is sent, so that the request goes out on a new one. A connection belongs to one thread.
"""

import math
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self, TypeVar, cast

from hmb.client.errors import answered_error
from hmb.client.reconnecting import KnownBrokers
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.primitives import Part
from hmb.protocol.schema import Request

MAX_RESPONSE_SIZE = 256 * 1024 * 1024
READ_AHEAD = 8192  # bytes: many small answers that have come together are read at once
# The correlation id of the first request, as bytes two line ends. A server of a protocol in lines (HTTP, SMTP, Redis)
# would wait for the end of the line until the time limit. With the line ends it answers at once, and its answer is
# not a Kafka response.
FIRST_CORRELATION_ID = int.from_bytes(b"\r\n\r\n", "big")
OTHER_PROTOCOLS = {b"http": "HTTP", b"<!do": "HTTP", b"<htm": "HTTP", b"<?xm": "HTTP", b"ssh-": "SSH"}
CONNECT_TIMEOUT = 10.0  # seconds: an address that swallows packets should not use up the time of the others
# Brokers without ApiVersions: 0.8.2 has the APIs 0 to 10, 0.9 those of groups as well. Version 1 of the requests for
# committed offsets is about those in Kafka itself, 0 about those in ZooKeeper.
VERSIONS_OF_08 = dict.fromkeys(range(11), range(1)) | dict.fromkeys((8, 9), range(2))
VERSIONS_OF_09 = dict.fromkeys(range(17), range(1)) | dict.fromkeys((8, 9), range(2))
T = TypeVar("T")


class ConnectionFailed(ConnectionError):
    """The broker cannot be reached, went away, or did not answer in time."""

    def __init__(self, host: str, port: int, what: str) -> None:
        super().__init__(what)
        self.host, self.port = host, port


class HungUp(ConnectionFailed):
    """The broker closed the connection where an answer should have come."""


def _guess(beginning: bytes) -> str:
    """Return a hint on the protocol of a server whose first bytes are not a Kafka response; empty if unknown."""
    if beginning.startswith(b"\x15\x03"):  # A TLS alert: the server expected a ClientHello.
        return "; it looks like TLS, which this client does not speak: use a PLAINTEXT listener"
    found = next((name for start, name in OTHER_PROTOCOLS.items() if beginning.lower().startswith(start)), "")
    return f"; it looks like {found}" if found else ""


class _Stream:
    """A socket's two directions, each until a deadline.

    The socket itself never waits: a thread that comes back from a system call waits for Python's interpreter lock, so
    there should be one and not two of them where the answer is there, or room for the request.
    """

    def __init__(self, its_socket: socket.socket) -> None:
        its_socket.setblocking(False)
        self._socket = its_socket
        self._input, self._output = select.poll(), select.poll()
        self._input.register(its_socket, select.POLLIN)
        self._output.register(its_socket, select.POLLOUT)
        self._ahead = b""  # what was read and not asked for yet
        self.deadline = 0.0  # of what is read, time.monotonic()
        self.beginning = b""  # the first bytes that have come

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, as soon as there are some."""
        data = self._ahead or self._receive(max(size, READ_AHEAD))
        self._ahead = data[size:]
        return data[:size]

    def readinto(self, buffer: memoryview) -> int:
        """Fill the start of the buffer, as soon as there are bytes; returns how many."""
        if not self._ahead:
            return self._when_ready(partial(self._socket.recv_into, buffer))
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _receive(self, size: int) -> bytes:
        data = self._when_ready(partial(self._socket.recv, size))
        self.beginning = self.beginning or data[:4]
        return data

    def _when_ready(self, receive: Callable[[], T]) -> T:
        """Receive bytes as soon as there are some.  Raises TimeoutError."""
        while time.monotonic() < self.deadline:
            try:
                return receive()
            except BlockingIOError:
                _wait(self._input, self.deadline)
        raise TimeoutError

    def write(self, data: bytes, deadline: float) -> None:
        """All of it."""
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                _wait(self._output, deadline)

    @property
    def has_buffered(self) -> bool:
        """Whether something has been read that was not asked for yet."""
        return bool(self._ahead)

    @property
    def has_some(self) -> bool:
        """Whether `read` would not wait; where nothing is waited for, what comes is the connection's end."""
        return self.has_buffered or bool(self._input.poll(0))


def _wait(poll: select.poll, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(math.ceil(left * 1000)):
        raise TimeoutError


class Connection:
    """A connection that opens at its first request, and again after a failure.

    The connections of one client share what they `know` of its brokers.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = "hmb",
        timeout: float = 30.0,
        *,
        known: KnownBrokers | None = None,
    ) -> None:
        self.host, self.port = host, port
        self.timeout = timeout
        self._client_id = client_id
        self._known = KnownBrokers() if known is None else known
        self._socket: socket.socket | None = None
        self._is_ready = False
        self._stream: _Stream
        self._protocol: ClientConnection
        self._versions: dict[int, range] = {}  # the broker's, by API key
        self._waiting = 0

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    @property
    def waiting(self) -> int:
        """How many answers are still to come."""
        return self._waiting

    def send(self, request: Request, version: int | None = None, timeout: float | None = None) -> Any:
        """The answer to a request; in the highest version that both sides know, unless one is given.

        Not while other answers are to come, for the next one would be another's: then the connection is closed.
        """
        if self._waiting:
            raise self._failed(f"{self.address} was asked while it owed {self._waiting} other answers")
        self.post(request, version)
        try:
            return self.receive(timeout)
        except BaseException:  # Ctrl-C, too: the answer that is still to come must not be taken for the next one's
            self.close()
            raise

    def post(self, request: Request, version: int | None = None, *, answered: bool = True) -> None:
        """Send a request and leave its answer to `receive`; `answered` is false for a Produce with acks=0."""
        if version is None:
            version = self.version_of(type(request))
        self.post_all([request], version, answered=answered)

    def post_all(self, requests: Sequence[Request], version: int, *, answered: bool = True) -> None:
        """Send several requests of a kind with one system call."""
        protocol = self._protocol_of_open_socket()
        self._write([part for request in requests for part in protocol.request(request, version, answered)])
        self._waiting += answered * len(requests)

    def receive(self, timeout: float | None = None) -> Any:
        """The answer to the oldest request that has none yet, within `timeout` seconds or else the connection's."""
        if self._socket is None:
            raise self._failed(f"the connection to {self.address} was closed before the answer came")
        response = self._read(timeout)
        self._waiting -= 1
        return response

    @property
    def is_answered(self) -> bool:
        """Whether something has come: an answer, its beginning, or the end of the connection."""
        return self._socket is None or self._stream.has_some

    @property
    def has_buffered(self) -> bool:
        """Whether the beginning of an answer has been read already, together with the one before it."""
        return self._stream.has_buffered

    def fileno(self) -> int:
        """The socket's number, to wait for several connections at once; only while this one is open."""
        assert self._socket is not None
        return self._socket.fileno()

    def interrupt(self) -> None:
        """For another thread: end the connection, with ConnectionFailed for whoever waits for an answer."""
        its_socket = self._socket
        if its_socket is not None:
            with suppress(OSError):  # it is closed
                its_socket.shutdown(socket.SHUT_RDWR)

    def version_of(self, request: type[Request], at_most: int | None = None) -> int:
        """The highest version of a request that this broker and this client know; KafkaError if there is none."""
        self._protocol_of_open_socket()
        ours, theirs = request.versions, self._versions.get(request.api_key, range(0))
        newest = min(ours.stop, theirs.stop) - 1
        version = newest if at_most is None else min(newest, at_most)
        if version not in ours or version not in theirs:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, self._no_common_version(request, theirs))
        return version

    def knows(self, request: type[Request]) -> bool:
        """Whether the broker has this API at all."""
        self._protocol_of_open_socket()
        return request.api_key in self._versions

    @property
    def versions(self) -> Mapping[int, range]:
        """The APIs that the broker has, by their keys, and in which versions."""
        self._protocol_of_open_socket()
        return self._versions

    def close(self) -> None:
        """Close the socket; answers that have not come are lost."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._is_ready = False
        self._waiting = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _protocol_of_open_socket(self) -> ClientConnection:
        if self._socket is not None and not self._waiting and self._stream.has_some:
            self.close()
        if self._socket is None:
            if reason := self._known.trouble(self.address):
                raise ConnectionFailed(self.host, self.port, reason)
            self._open()
        return self._protocol

    def _open(self) -> None:
        try:
            self._connect()
            self._negotiate()
        except ConnectionFailed as error:
            self._known.failed(self.address, str(error))
            raise
        except BaseException:  # Ctrl-C while the two sides have not agreed on versions yet
            self.close()
            raise
        self._is_ready = True
        self._known.opened(self.address)

    def _connect(self) -> None:
        try:
            timeout = min(self.timeout, CONNECT_TIMEOUT)
            self._socket = socket.create_connection((self.host, self.port), timeout=timeout)
        except socket.gaierror as error:
            raise self._failed(f"{self.host} is not the name of a known host") from error
        except ConnectionRefusedError as error:
            raise self._failed(f"nobody listens on {self.address}") from error
        except OSError as error:
            raise self._failed(f"{self.address} cannot be reached: {error.strerror or error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = _Stream(self._socket)
        self._protocol = ClientConnection(self._client_id, FIRST_CORRELATION_ID)

    def _negotiate(self) -> None:
        try:
            self._ask_versions()
        except HungUp:
            if self._known.has_api_versions(self.address):
                raise
            self._connect()
            # Only a broker that answers an old request and hangs up on the new question is an old one; any other may
            # be going down, or have as many connections as it wants.
            self._write(self._protocol.request(ListOffsetsRequest(replica_id=-1), 0))
            self._read()
            try:
                self._ask_versions()
            except HungUp:
                self._connect()
                self._find_out_versions()

    def _find_out_versions(self) -> None:
        """Tell 0.9 from 0.8.2, by whether it has groups."""
        self._write(self._protocol.request(ListGroupsRequest(), 0))
        try:
            self._read()
            self._versions = VERSIONS_OF_09
        except HungUp:
            self._connect()
            self._versions = VERSIONS_OF_08

    def _ask_versions(self) -> None:
        """Ask for the broker's versions; version 0 of the question is known wherever the question is."""
        self._write(self._protocol.request(ApiVersionsRequest(), 0))
        response: ApiVersionsResponse = self._read()
        if response.error_code:
            self.close()
            raise answered_error(self.address, response.error_code)
        self._versions = {api.api_key: range(api.min_version, api.max_version + 1) for api in response.api_keys}
        self._known.answered_api_versions(self.address)

    def _write(self, parts: list[Part]) -> None:  # none of them in a file: that is the broker's
        try:
            self._stream.write(b"".join(cast("list[bytes | memoryview]", parts)), time.monotonic() + self.timeout)
        except TimeoutError as error:
            raise self._failed(f"{self.address} did not take a request within {self.timeout:g} s") from error
        except OSError as error:
            raise self._failed(f"the connection to {self.address} broke: {error.strerror or error}") from error
        except BaseException:  # Ctrl-C in the middle of a request: the next one must not come behind half of it
            self.close()
            raise

    def _read(self, timeout: float | None = None) -> Any:
        timeout = self.timeout if timeout is None else timeout
        self._stream.deadline = time.monotonic() + timeout
        try:
            frame = read_frame(self._stream, MAX_RESPONSE_SIZE)
            if frame is None:
                raise EOFError
            return self._protocol.receive(frame)[1]
        except (EOFError, ConnectionResetError) as error:
            raise self._failed(f"{self.address} closed the connection", HungUp) from error
        except TimeoutError as error:
            raise self._failed(f"{self.address} did not answer within {timeout:g} s") from error
        except OSError as error:
            raise self._failed(f"the connection to {self.address} broke: {error.strerror or error}") from error
        except ProtocolError as error:
            if self._is_ready:  # it does, as it has shown
                raise self._failed(f"an answer of {self.address} cannot be read: {error}") from error
            what = f"{self.address} does not speak Kafka's protocol: {error}"
            raise self._failed(what + _guess(self._stream.beginning)) from error

    def _failed(self, what: str, kind: type[ConnectionFailed] = ConnectionFailed) -> ConnectionFailed:
        if self._is_ready:
            self._known.lost(self.address, what)
        self.close()
        return kind(self.host, self.port, what)

    def _no_common_version(self, request: type[Request], theirs: range) -> str:
        name = ApiKey(request.api_key).name
        if not theirs:
            return f"{self.address} has no {name} API"
        ours = f"this client {request.versions[0]} to {request.versions[-1]}"
        return f"{self.address} knows {name} in versions {theirs[0]} to {theirs[-1]}, {ours}"
