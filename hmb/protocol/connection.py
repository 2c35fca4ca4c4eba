"""Both ends of a connection, without the connection: frames go in, messages come out, and the reverse.

Neither class reads or writes a socket ("sans-IO"), so both can be tested with bytes alone and used with any transport.
What they know is the grammar of the conversation: which header goes with which message, which response belongs to which
request, and the one exception to both, ApiVersions, which is sent before the two sides know each other:

- Its response has header version 0 always (data: `header="none"` in messages/api_versions.py).
- A broker that does not know the request's version answers UNSUPPORTED_VERSION in a version 0 body.
"""

import itertools
import struct
from collections import deque

from hmb.protocol.errors import ErrorCode, ProtocolError
from hmb.protocol.framing import frame
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.messages import request_class, response_class
from hmb.protocol.messages.api_versions import ApiVersionsResponse
from hmb.protocol.primitives import Output, Part
from hmb.protocol.schema import Request, Response, Struct

_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")  # how a version 0 answer would begin
_KEY_AND_VERSION = struct.Struct(">hh")


class UnsupportedVersion(ProtocolError):
    """A request of an API or a version that is not known here; its header could be read nevertheless."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"api key {header.api_key} in version {header.api_version} is not supported")
        self.header = header


def request_type(frame: memoryview) -> tuple[type[Request], int]:
    """Class and version of a request, which its first bytes tell; UnsupportedVersion if there are none such here."""
    start = bytes(frame[: _KEY_AND_VERSION.size])
    api_key, version = _KEY_AND_VERSION.unpack(start) if len(start) == _KEY_AND_VERSION.size else (-1, -1)
    try:
        known = request_class(api_key)
    except KeyError:
        known = None
    if known is None or version not in known.versions:
        raise UnsupportedVersion(RequestHeader.decode_prefix(frame, 1)[0])
    return known, version


def _put_together(header: Struct, header_version: int, message: Struct, version: int) -> list[Part]:
    out = Output()
    header.compile(header_version).encode(out, header)
    message.compile(version).encode(out, message)
    return frame(out.parts())


class ServerConnection:
    """The broker's end."""

    def receive(self, frame: memoryview) -> tuple[RequestHeader, Request]:
        """Take a request apart; ProtocolError, or UnsupportedVersion if at least its header could be read.

        Bytes that follow the request are ignored, as Kafka does: librdkafka 2.12 sends three with Metadata v13.
        """
        known, version = request_type(frame)
        header, position = RequestHeader.decode_prefix(frame, known.header_version(version))
        return header, known.decode_prefix(frame, version, position)[0]

    def respond(self, header: RequestHeader, response: Response, version: int | None = None) -> list[Part]:
        """The answer's frame, in the request's version, or in the given one after an UnsupportedVersion."""
        version = header.api_version if version is None else version
        answer = ResponseHeader(correlation_id=header.correlation_id)
        return _put_together(answer, response.header_version(version), response, version)


class ClientConnection:
    """The client's end.  A broker answers in order, so the answers awaited form a queue."""

    def __init__(self, client_id: str | None, first_correlation_id: int = 0) -> None:
        self.client_id = client_id
        self._correlation_ids = itertools.chain([first_correlation_id], itertools.count(1))
        self._awaited: deque[tuple[int, type[Response], int]] = deque()

    def request(self, request: Request, version: int, answered: bool = True) -> list[Part]:
        """The request's frame.  Not `answered` is a Produce with acks=0: the broker will say nothing."""
        header = RequestHeader(
            api_key=request.api_key,
            api_version=version,
            correlation_id=next(self._correlation_ids) % 2**31,
            client_id=self.client_id,
        )
        parts = _put_together(header, request.header_version(version), request, version)
        if answered:
            self._awaited.append((header.correlation_id, response_class(request.api_key), version))
        return parts

    def receive(self, frame: memoryview) -> tuple[int, Response]:
        """Take the next answer apart: the correlation id of its request, and the answer."""
        if not self._awaited:
            raise ProtocolError(f"{len(frame)} bytes of an answer to nothing")
        correlation_id, expected, version = self._awaited.popleft()
        header, position = ResponseHeader.decode_prefix(frame, expected.header_version(version))
        if header.correlation_id != correlation_id:
            raise ProtocolError(f"answer to request {header.correlation_id} in place of {correlation_id}")
        if expected is ApiVersionsResponse and frame[position : position + 2] == _UNSUPPORTED_VERSION:
            version = 0
        return correlation_id, expected.decode(frame, version, position)
