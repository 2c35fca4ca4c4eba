"""Both ends of a connection without its socket: frames become messages, and messages become frames.

The two classes of this module do not read or write a socket ("sans-IO"). Tests need only bytes, and any transport can
use the classes. The classes implement three rules: each message has its header, responses arrive in the order of the
requests, and each response has the version of its request.

ApiVersions is an exception. A client sends an ApiVersions request before it knows the broker's versions, so two special
rules apply:

- The ApiVersions response always has header version 0 (declared as `header="none"` in messages/api_versions.py).
- A broker that does not support the request's version responds with UNSUPPORTED_VERSION, in version 0.
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

_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")  # begins a response of version 0
_KEY_AND_VERSION = struct.Struct(">hh")


class UnsupportedVersion(ProtocolError):
    """A request has a valid header, but HMB does not support its API or its version."""

    def __init__(self, header: RequestHeader, supported: range | None) -> None:
        """`supported` contains the versions of the API that are supported; None means that the API is not."""
        if supported:
            wanted = f"{api_name(ApiKey(header.api_key))} version {header.api_version}"
            problem = f"{wanted} is not supported; supported versions: {supported[0]} to {supported[-1]}"
        else:
            problem = f"the API with key {header.api_key} is not supported"
        super().__init__(problem)
        self.header = header


def request_type(frame: memoryview) -> tuple[type[Request], int]:
    """Return the class and the version of a request from its first bytes. Raises UnsupportedVersion."""
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
    """The broker's end of a connection."""

    def __init__(self, offered: Mapping[ApiKey, range] | None = None) -> None:
        """Offer these versions of each API, by the API's key. None means all APIs and versions that HMB knows."""
        self._offered = offered

    def receive(self, frame: memoryview) -> tuple[RequestHeader, Request]:
        """Decode a request.

        Raises UnsupportedVersion for an API or a version that the broker does not offer, and ProtocolError for
        malformed bytes.

        Bytes after the request are ignored, as in Kafka. For example, librdkafka 2.12 sends three bytes after a
        Metadata v13 request.
        """
        known, version = request_type(frame)
        header, position = RequestHeader.decode_prefix(frame, known.header_version(version))
        if self._offered is not None and version not in self._offered.get(known.api_key, ()):
            raise UnsupportedVersion(header, self._offered.get(known.api_key))
        return header, known.decode_prefix(frame, version, position)[0]

    def respond(self, header: RequestHeader, response: Response, version: int | None = None) -> list[Part]:
        """Return the frame of a response in the request's version, or in `version` after an UnsupportedVersion."""
        version = header.api_version if version is None else version
        answer = ResponseHeader(correlation_id=header.correlation_id)
        return _encode_frame(answer, response.header_version(version), response, version)


class ClientConnection:
    """The client's end of a connection. A broker responds in order, so the expected responses form a queue."""

    def __init__(self, client_id: str | None, first_correlation_id: int = 0) -> None:
        self.client_id = client_id
        self._correlation_ids = itertools.chain([first_correlation_id], itertools.count(1))
        self._expected: deque[tuple[int, type[Response], int]] = deque()

    def request(self, request: Request, version: int, answered: bool = True) -> list[Part]:
        """Return the frame of a request. A Produce with acks=0 is not `answered`: the broker sends no response."""
        header = RequestHeader(
            api_key=request.api_key,
            api_version=version,
            correlation_id=next(self._correlation_ids) % 2**31,
            client_id=self.client_id,
        )
        parts = _encode_frame(header, request.header_version(version), request, version)
        if answered:
            self._expected.append((header.correlation_id, response_class(request.api_key), version))
        return parts

    def receive(self, frame: memoryview) -> tuple[int, Response]:
        """Decode the next response. Return the correlation id of its request, and the response.

        Raises ProtocolError if the response is malformed, or does not belong to the next expected request.
        """
        if not self._expected:
            raise ProtocolError(f"a response of {len(frame)} bytes arrived, but no request waits for one")
        correlation_id, expected, version = self._expected.popleft()
        header, position = ResponseHeader.decode_prefix(frame, expected.header_version(version))
        if header.correlation_id != correlation_id:
            raise ProtocolError(
                f"a response to request {header.correlation_id} arrived instead of the one to request {correlation_id}"
            )
        if expected is ApiVersionsResponse and frame[position : position + 2] == _UNSUPPORTED_VERSION:
            version = 0
        return correlation_id, expected.decode(frame, version, position)
