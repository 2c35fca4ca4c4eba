"""A connection to one broker: it sends requests, and returns the broker's responses.

A broker sends the responses of a connection in the order of the requests. A client may therefore send several requests
before it reads the first response. The method `post` sends a request, and `receive` reads the next response. `send`
does both: it sends one request and waits for its response.

Client and broker must both support the version of each request. A new connection therefore begins with an ApiVersions
request. The response lists the versions that the broker supports. The client then uses the highest version that both
sides support (KIP-35):
    ApiVersions  ----->
                 <-----  Produce 3 to 12, Fetch 4 to 16, ...
    Fetch v16    ----->

A broker before Kafka 0.10 does not know ApiVersions, and closes the connection. The client then sends
ListGroups. Kafka 0.9 answers and Kafka 0.8.2 does not, so the client knows which request versions to use.

A broker can close the connection after an ApiVersions request for two reasons: the broker is older than Kafka
0.10, or it is shutting down. Only an old broker needs the request versions of Kafka 0.9 or 0.8.2, in which
records have no timestamps and headers. The client uses these versions only if three conditions hold:
- The broker has never answered an ApiVersions request of this client.
- On a second connection, the broker answers another request (ListOffsets), so it is not shutting down.
- The client then sends ApiVersions on the second connection, and the broker closes this connection.

After every network error, the connection closes its socket and raises `ConnectionFailed`. The next request
opens a new socket. If the client cannot connect, it does not try again for up to one second, and every request
fails immediately (see the module `reconnecting`). The parameter `timeout` limits the time until the response is
complete, even if its bytes arrive one by one.

A broker may close an idle connection. Before each request, the client therefore checks whether the broker has
closed the socket, and opens a new socket if necessary. Only one thread at a time may use a connection, but any
thread may call `interrupt` at any time.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, cast

import hmb
from hmb.client.errors import response_error
from hmb.client.reconnecting import AddressFailures
from hmb.client.security.login import log_in
from hmb.client.security.settings import NO_SECURITY, ClientSecurity
from hmb.client.security.tls import encrypted
from hmb.client.security.tls import failure as tls_failure
from hmb.client.settings import CLIENT_ID, REQUEST_TIMEOUT
from hmb.client.socket_stream import SocketStream
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.enums import CONSUMER_REPLICA_ID
from hmb.protocol.errors import ErrorCode, HmbError, KafkaError, ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.messages.api_versions import FIRST_VERSION_OF_NAMES, ApiVersionsRequest, ApiVersionsResponse
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.primitives import Part
from hmb.protocol.schema import Request

MAX_RESPONSE_SIZE = 256 * 1024 * 1024  # bytes; the client closes the connection if a response is larger
SOFTWARE = ApiVersionsRequest(client_software_name="hmb", client_software_version=hmb.__version__)
# A server of a text protocol (HTTP, SMTP, Redis) waits for a line end. The bytes of the first correlation id are two
# line ends, so the server answers immediately. The client then sees that the server is not a Kafka broker.
FIRST_CORRELATION_ID = int.from_bytes(b"\r\n\r\n", "big")
OTHER_PROTOCOLS = {b"http": "HTTP", b"<!do": "HTTP", b"<htm": "HTTP", b"<?xm": "HTTP", b"ssh-": "SSH"}
SESSION_SHARE = 0.85  # After this fraction of a login's lifetime, the client logs in again on a new connection.
CONNECT_TIMEOUT = 10.0  # seconds; the longest time that a broker may take to accept a connection
# A broker before Kafka 0.10 does not know ApiVersions. For Kafka 0.8.2 and 0.9, these dicts map each API key to the
# versions that the client can use. The offsets of OffsetCommit (8) and OffsetFetch (9) are stored in ZooKeeper with
# version 0, and in Kafka with version 1.
VERSIONS_OF_08 = dict.fromkeys(range(11), range(1)) | dict.fromkeys((8, 9), range(2))
VERSIONS_OF_09 = dict.fromkeys(range(17), range(1)) | dict.fromkeys((8, 9), range(2))


class ConnectionFailed(HmbError, ConnectionError):
    """The broker cannot be reached, has closed the connection, or did not answer in time."""

    def __init__(self, host: str, port: int, what: str) -> None:
        super().__init__(what)
        self.host, self.port = host, port


class ClosedByBroker(ConnectionFailed):
    """The broker has closed the connection instead of sending a response."""


def _protocol_hint(beginning: bytes) -> str:
    """Return a hint for an error message: the name of the protocol that a server seems to use, for example HTTP.

    `beginning` contains the first bytes that the server has sent. If these bytes match no known protocol, return "".
    """
    if beginning.startswith(b"\x15\x03"):  # A TLS alert: the server expected the start of a TLS handshake.
        return "; the listener uses TLS: set security.protocol=SSL or SASL_SSL, or use a PLAINTEXT listener"
    found = next((name for start, name in OTHER_PROTOCOLS.items() if beginning.lower().startswith(start)), "")
    return f"; it looks like {found}" if found else ""


class Connection:
    """A connection to one broker.

    The first request opens the socket. After a failure, the next request opens a new socket. `address_failures` stores
    which broker addresses have failed recently. All connections of one client share one `AddressFailures` object.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = CLIENT_ID,
        timeout: float = REQUEST_TIMEOUT,
        *,
        address_failures: AddressFailures | None = None,
        security: ClientSecurity = NO_SECURITY,
    ) -> None:
        self.host, self.port = host, port
        self.timeout = timeout
        self._client_id, self._security = client_id, security
        self._session_ends = math.inf  # the time (monotonic clock) at which the client must log in again
        self._address_failures = AddressFailures() if address_failures is None else address_failures
        self._socket: socket.socket | None = None
        self._is_ready = False
        self._stream: SocketStream
        self._protocol: ClientConnection
        self._versions: dict[int, range] = {}  # the versions that the broker supports, by API key
        # The features of the cluster (KIP-584): a mapping from the name of each feature to its level, for example
        # {"metadata.version": 25}. A broker before Kafka 2.7 reports no features.
        self.features: Mapping[str, int] = {}
        self._waiting = 0  # the number of requests whose responses have not been received yet

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    @property
    def waiting(self) -> int:
        """The number of requests whose responses have not been received yet."""
        return self._waiting

    def send(self, request: Request, version: int | None = None, timeout: float | None = None) -> Any:
        """Send a request and return its response. By default, use the highest version that both sides support.

        Raises ConnectionFailed after a network error, or if an earlier request still waits for its response. Raises
        KafkaError with UNSUPPORTED_VERSION if the client and the broker support no common version.
        """
        if self._waiting:
            raise self._failed(f"a request was sent to {self.address} while {self._waiting} others had no response")
        self.post(request, version)
        try:
            return self.receive(timeout)
        except BaseException:  # Close the connection, so that no later request receives this response.
            self.close()
            raise

    def post(self, request: Request, version: int | None = None, *, expects_response: bool = True) -> None:
        """Send a request without waiting for the response. `receive` returns the response later.

        `expects_response` is False if the broker sends no response. The only request without a response is a Produce
        request with acks=0.
        """
        if version is None:
            version = self.version_of(type(request))
        self.post_all([request], version, expects_response=expects_response)

    def post_all(self, requests: Sequence[Request], version: int, *, expects_response: bool = True) -> None:
        """Send several requests of the same API with one system call. Do not wait for the responses."""
        protocol = self._protocol_of_open_socket()
        self._write([part for request in requests for part in protocol.request(request, version, expects_response)])
        self._waiting += expects_response * len(requests)

    def receive(self, timeout: float | None = None) -> Any:
        """Wait for the response to the oldest unanswered request, and return the response.

        `timeout` (seconds) replaces the connection's default timeout for this response.
        """
        if self._socket is None:
            raise self._failed(f"the connection to {self.address} was closed before the response arrived")
        response = self._read(timeout)
        self._waiting -= 1
        return response

    @property
    def has_response(self) -> bool:
        """True if `receive` has something to report: the first bytes of a response, or a closed connection."""
        return self._socket is None or self._stream.is_readable

    @property
    def has_buffered(self) -> bool:
        """True if bytes of the next response are already in the client's memory.

        The caller then needs no system call to find out whether a response has arrived.
        """
        return self._stream.has_buffered

    def fileno(self) -> int:
        """Return the file descriptor of the socket, so that a selector can wait for several connections."""
        assert self._socket is not None
        return self._socket.fileno()

    def interrupt(self) -> None:
        """Shut down the socket. Every thread is allowed to call this method.

        If another thread waits in `receive` for a response, `receive` raises ConnectionFailed in that thread.
        """
        its_socket = self._socket
        if its_socket is not None:
            with suppress(OSError):  # The socket may already be closed.
                its_socket.shutdown(socket.SHUT_RDWR)

    def version_of(self, request: type[Request], at_most: int | None = None) -> int:
        """Return the highest version of a request that both this broker and this client support.

        If `at_most` is not None, the result is at most this version. Raises KafkaError with UNSUPPORTED_VERSION if both
        sides have no common version. Raises ConnectionFailed if the broker cannot be reached.
        """
        self._protocol_of_open_socket()
        ours, theirs = request.versions, self._versions.get(request.api_key, range(0))
        newest = min(ours.stop, theirs.stop) - 1
        version = newest if at_most is None else min(newest, at_most)
        if version not in ours or version not in theirs:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, self._no_common_version(request, theirs))
        return version

    def supports(self, request: type[Request]) -> bool:
        """Return whether the broker supports at least one version of this request."""
        self._protocol_of_open_socket()
        return request.api_key in self._versions

    @property
    def versions(self) -> Mapping[int, range]:
        """A mapping from each API key that the broker supports to the range of its supported versions."""
        self._protocol_of_open_socket()
        return self._versions

    def close(self) -> None:
        """Close the socket. The responses that have not been received yet are lost."""
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
        is_idle = self._socket is not None and not self._waiting
        if is_idle and (self._stream.is_readable or time.monotonic() > self._session_ends):
            self.close()
        if self._socket is None:
            if reason := self._address_failures.recent_failure(self.address):
                raise ConnectionFailed(self.host, self.port, reason)
            self._open()
        return self._protocol

    def _open(self) -> None:
        try:
            self._connect()
            self._negotiate()
            if self._security.protocol.has_sasl:
                self._log_in()
        except ConnectionFailed as error:
            self._address_failures.failed(self.address, str(error))
            raise
        except BaseException:  # After Ctrl-C, close the connection, because it is not ready for requests.
            self.close()
            raise
        self._is_ready = True
        self._address_failures.opened(self.address)

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
        if self._security.context is not None:
            try:
                self._socket = encrypted(self._socket, self._security.context, self.host)
            except OSError as error:
                raise self._failed(f"{self.address}: {tls_failure(error)}") from error
        self._stream = SocketStream(self._socket)
        self._protocol = ClientConnection(self._client_id, FIRST_CORRELATION_ID)

    def _log_in(self) -> None:
        """Log in with SASL. The broker may limit the lifetime of a login. If so, store the time of the next login."""
        lifetime = log_in(self._security, self._ask, self.address)
        self._session_ends = math.inf if lifetime is None else time.monotonic() + SESSION_SHARE * lifetime

    def _ask(self, request: Request) -> Any:
        ours, theirs = request.versions, self._versions.get(request.api_key, range(1))
        self._write(self._protocol.request(request, min(ours[-1], theirs[-1])))
        return self._read()

    def _negotiate(self) -> None:
        try:
            self._request_versions()
        except ClosedByBroker:
            if self._address_failures.has_api_versions(self.address):
                raise
            self._connect()
            # The broker closed the connection after the ApiVersions request: it is too old, or it is shutting down.
            # Even the oldest broker answers ListOffsets. If an answer arrives, the broker is not shutting down.
            self._write(self._protocol.request(ListOffsetsRequest(replica_id=CONSUMER_REPLICA_ID), 0))
            self._read()
            try:
                self._request_versions()
            except ClosedByBroker:
                self._connect()
                self._detect_old_versions()

    def _detect_old_versions(self) -> None:
        """Decide between Kafka 0.9 and Kafka 0.8.2. Of these two, only Kafka 0.9 answers a ListGroups request."""
        self._write(self._protocol.request(ListGroupsRequest(), 0))
        try:
            self._read()
            self._versions = VERSIONS_OF_09
        except ClosedByBroker:
            self._connect()
            self._versions = VERSIONS_OF_08

    def _request_versions(self) -> None:
        """Ask the broker which request versions it supports (ApiVersions), and store these versions.

        The first ApiVersions request contains the name and the version of this library (KIP-511). A broker before
        Kafka 2.4 answers it with UNSUPPORTED_VERSION. The method then sends version 0 of ApiVersions, which each
        broker since Kafka 0.10 supports.
        """
        self._write(self._protocol.request(SOFTWARE, FIRST_VERSION_OF_NAMES))
        response: ApiVersionsResponse = self._read()
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            self._write(self._protocol.request(ApiVersionsRequest(), 0))
            response = self._read()
        if response.error_code:
            self.close()
            raise response_error(self.address, response.error_code)
        self._versions = {api.api_key: range(api.min_version, api.max_version + 1) for api in response.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in response.finalized_features}
        self._address_failures.add_api_versions(self.address)

    def _write(self, parts: list[Part]) -> None:
        try:
            # The cast is safe: all parts of a request are bytes. Only the responses of a broker contain parts of files.
            self._stream.write(b"".join(cast("list[bytes | memoryview]", parts)), time.monotonic() + self.timeout)
        except TimeoutError as error:
            raise self._failed(f"{self.address} did not take a request within {self.timeout:g} s") from error
        except OSError as error:
            raise self._failed(f"the connection to {self.address} broke: {error.strerror or error}") from error
        except BaseException:  # After Ctrl-C, close the connection: only a part of the request may have been sent.
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
            raise self._failed(f"{self.address} closed the connection", ClosedByBroker) from error
        except TimeoutError as error:
            raise self._failed(f"{self.address} did not answer within {timeout:g} s") from error
        except OSError as error:
            raise self._failed(f"the connection to {self.address} broke: {error.strerror or error}") from error
        except ProtocolError as error:
            if self._is_ready:  # The server has already answered ApiVersions, so it is a Kafka broker.
                raise self._failed(f"a response of {self.address} cannot be decoded: {error}") from error
            what = f"{self.address} does not speak Kafka's protocol: {error}"
            raise self._failed(what + _protocol_hint(self._stream.beginning)) from error

    def _failed(self, what: str, kind: type[ConnectionFailed] = ConnectionFailed) -> ConnectionFailed:
        if self._is_ready:
            self._address_failures.lost(self.address, what)
        self.close()
        return kind(self.host, self.port, what)

    def _no_common_version(self, request: type[Request], theirs: range) -> str:
        name = ApiKey(request.api_key).name
        if not theirs:
            return f"{self.address} has no {name} API"
        ours = f"this client {request.versions[0]} to {request.versions[-1]}"
        return f"{self.address} knows {name} in versions {theirs[0]} to {theirs[-1]}, {ours}"
