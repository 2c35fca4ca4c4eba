"""The two ends of a connection, without a socket: they convert frames to messages, and messages to frames.

The two classes of this module use no sockets ("sans-IO"). So tests need only bytes, and other code can use
the classes with sockets, files or pipes. The classes implement three rules of the protocol:

- Each message begins with a header.
- Responses arrive in the order of the requests.
- A response has the same version as its request. Only an ApiVersions response can have another version.

A client sends an ApiVersions request before it knows which versions the broker supports. Two special rules
ensure that the client can read the response in every case:
- The header of an ApiVersions response always has version 0, even if the body has a newer version.
- If the broker does not support the version of the ApiVersions request, it sends a response in version 0, with
  the error UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import itertools
import struct
from collections import deque
from collections.abc import Mapping

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, ProtocolError
from hmb.protocol.framing import frame
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.messages import api_name, request_class, response_class
from hmb.protocol.messages.api_versions import ApiVersionsResponse
from hmb.protocol.primitives import Output, Part
from hmb.protocol.schema import Request, Response, Struct

UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")  # the first bytes of a version 0 response
_KEY_AND_VERSION = struct.Struct(">hh")


class UnsupportedVersion(ProtocolError):
    """The error for a request with a valid header, but with an API or a version that HMB does not support."""

    def __init__(self, header: RequestHeader, supported: range | None) -> None:
        """Build the error message.

        `supported` contains the supported versions of the API, or is None for an unknown API.
        """
        if supported:
            wanted = f"{api_name(ApiKey(header.api_key))} version {header.api_version}"
            problem = f"{wanted} is not supported; supported versions: {supported[0]} to {supported[-1]}"
        else:
            problem = f"the API with key {header.api_key} is not supported"
        super().__init__(problem)
        self.header = header


def request_type(frame: memoryview) -> tuple[type[Request], int]:
    """Return the class and the version of the request in `frame`.

    Raises UnsupportedVersion if HMB has no such class.
    """
    start = bytes(frame[: _KEY_AND_VERSION.size])
    api_key, version = _KEY_AND_VERSION.unpack(start) if len(start) == _KEY_AND_VERSION.size else (-1, -1)
    try:
        known = request_class(api_key)
    except KeyError:
        known = None
    if known is None or version not in known.versions:
        raise UnsupportedVersion(RequestHeader.decode_prefix(frame, 1)[0], known.versions if known else None)
    return known, version


def _encode_frame(header: Struct, header_version: int, message: Struct, version: int) -> list[Part]:
    out = Output()
    header.compile(header_version).encode(out, header)
    message.compile(version).encode(out, message)
    return frame(out.parts())


class ServerConnection:
    """The broker's end of a connection: decodes requests and encodes responses."""

    def __init__(self, offered: Mapping[ApiKey, range] | None = None) -> None:
        """Accept only the APIs and versions in `offered`.

        If `offered` is None, accept all APIs and versions that HMB supports.
        """
        self._offered = offered

    def receive(self, frame: memoryview) -> tuple[RequestHeader, Request]:
        """Decode a request, and return its header and its body.

        Raises UnsupportedVersion if the broker does not offer the request's API or version, and ProtocolError if the
        bytes are malformed.

        If the frame contains more bytes after the request, this method ignores them, as Kafka does. For example,
        librdkafka 2.12 sends three bytes too many with a Metadata request in version 13.
        """
        known, version = request_type(frame)
        header, position = RequestHeader.decode_prefix(frame, known.header_version(version))
        if self._offered is not None and version not in self._offered.get(known.api_key, ()):
            raise UnsupportedVersion(header, self._offered.get(known.api_key))
        return header, known.decode_prefix(frame, version, position)[0]

    def respond(self, header: RequestHeader, response: Response, version: int | None = None) -> list[Part]:
        """Return the frame of a response, as a list of parts. `header` is the header of the request.

        The response has the version of the request, unless the caller passes `version`. For example, if a client sends
        ApiVersions in a version that the broker does not support, the response has version 0.
        """
        version = header.api_version if version is None else version
        answer = ResponseHeader(correlation_id=header.correlation_id)
        return _encode_frame(answer, response.header_version(version), response, version)


class ClientConnection:
    """The client's end of a connection: encodes requests and decodes responses.

    A broker sends the responses of a connection in the order of the requests. So the client keeps a queue
    of the requests that wait for a response. Each response belongs to the oldest request in the queue.
    """

    def __init__(self, client_id: str | None, first_correlation_id: int = 0) -> None:
        self.client_id = client_id
        self._correlation_ids = itertools.chain([first_correlation_id], itertools.count(1))
        self._expected: deque[tuple[int, type[Response], int]] = deque()

    def request(self, request: Request, version: int, expects_response: bool = True) -> list[Part]:
        """Return the frame of a request, as a list of parts.

        `expects_response` is False if the broker sends no response to this request, for example to a Produce request
        with acks=0.
        """
        header = RequestHeader(
            api_key=request.api_key,
            api_version=version,
            correlation_id=next(self._correlation_ids) % 2**31,
            client_id=self.client_id,
        )
        parts = _encode_frame(header, request.header_version(version), request, version)
        if expects_response:
            self._expected.append((header.correlation_id, response_class(request.api_key), version))
        return parts

    def receive(self, frame: memoryview) -> tuple[int, Response]:
        """Decode the next response. Return the correlation id of the request, and the response.

        Raises ProtocolError if the response is malformed, or if it does not belong to the oldest request that waits for
        a response.
        """
        if not self._expected:
            raise ProtocolError(f"a response of {len(frame)} bytes arrived, but no request waits for a response")
        correlation_id, expected, version = self._expected.popleft()
        header, position = ResponseHeader.decode_prefix(frame, expected.header_version(version))
        if header.correlation_id != correlation_id:
            raise ProtocolError(
                f"a response to request {header.correlation_id} arrived, "
                f"but the response to request {correlation_id} is expected"
            )
        if expected is ApiVersionsResponse and frame[position : position + 2] == UNSUPPORTED_VERSION:
            version = 0
        return correlation_id, expected.decode(frame, version, position)
