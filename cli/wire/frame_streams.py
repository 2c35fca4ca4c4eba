"""Divide the bytes of a connection into frames, show the frames, and return the bytes to pass on.

A proxy passes on the bytes of a connection in both directions, between a client and a broker. This module uses no
sockets. A connection has two streams, one for each direction. When the proxy receives bytes, it passes the bytes to a
stream, and sends the bytes that the stream returns. A stream changes only the addresses of brokers in responses, and
returns all other bytes unchanged.

Usually, a stream returns the received bytes immediately. The next two paragraphs describe the exceptions.

At the beginning of a frame, a stream waits until it has received enough bytes to know which message the frame
contains. These first bytes of the frame are called the *head*.

If a message is a response that contains addresses of brokers, the stream waits until it has received the whole
response. Only then can the stream change the addresses.

`hmb sniff` shows each request before its response. When a stream has received the last byte of a request, it
shows the request, and then returns this byte to the proxy. The proxy sends the byte to the broker. The broker
cannot answer earlier, because it needs the whole request.

Three rules limit what a stream keeps and shows:
- A stream keeps at most MAX_KEPT bytes of a frame. If a frame is larger, the stream returns the other bytes
  without decoding them.
- If a stream receives bytes that cannot be a frame, it shows no more frames. It returns all bytes unchanged
  from then on, so the connection still works.
- A response belongs to the oldest request with the same correlation id. A broker answers the requests of a
  connection in their order. If it skips a request, it will never answer this request, and the stream
  forgets it. For example, the broker answers request 3 first. The stream then forgets requests 1 and 2.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from hmb.protocol.annotate import SIZE
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import UNSUPPORTED_VERSION
from hmb.protocol.enums import Acks
from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import TLS_HANDSHAKE
from hmb.protocol.messages import API_KEYS, response_class
from hmb.protocol.messages.api_versions import ApiVersionsResponse

from .frames import WireFrame, request_frame
from .readdressing import Address, holds_addresses, readdressed

MAX_KEPT = 4 << 20  # bytes; a stream keeps at most this many bytes of each frame
MAX_FRAME = 1 << 28  # bytes; a larger size is probably wrong, because brokers accept at most 100 MB by default
MAX_OPEN = 10_000  # requests without a response; a Kafka client has at most five by default
ENCRYPTED = "the messages are encrypted (TLS), and `hmb sniff` can read them only with --tls-key"
_REQUEST_HEAD = Struct(">ihhi")  # size, api key, version, correlation id
_RESPONSE_HEAD = Struct(">ii")  # size, correlation id


class OpenRequest(NamedTuple):
    """A request that has passed through the proxy, but has no response yet."""

    frame: WireFrame
    correlation_id: int
    sent_at: float  # when the request was sent: a value of time.monotonic()


class SeenFrame(NamedTuple):
    """A frame that has passed through a stream."""

    frame: WireFrame | None  # None: a response whose request is not known
    size: int  # bytes of the whole frame; `frame` contains at most MAX_KEPT of them
    correlation_id: int
    request: OpenRequest | None = None  # for a response: its request
    elapsed: float | None = None  # for a response: seconds since its request
    note: str = ""


class OpenRequests:
    """The requests of a connection that have no response yet, in the order in which they were sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards `_requests`: one thread adds requests, and another thread removes them
        self._requests: deque[OpenRequest] = deque(maxlen=MAX_OPEN)

    def add(self, request: OpenRequest) -> None:
        with self._lock:
            self._requests.append(request)

    def take(self, correlation_id: int) -> OpenRequest | None:
        """Remove and return the oldest request with this correlation id. Also remove all older requests.

        A broker answers requests in their order, so the older requests will never get a response. If no request has
        this correlation id, remove nothing, and return None.
        """
        with self._lock:
            if not any(request.correlation_id == correlation_id for request in self._requests):
                return None
            while (request := self._requests.popleft()).correlation_id != correlation_id:
                pass
            return request


class _FrameStream(ABC):
    """Divides the bytes of one direction of a connection into frames."""

    head_struct: Struct

    def __init__(self, show: Callable[[SeenFrame], None], warn: Callable[[str], None]) -> None:
        self._show, self._warn = show, warn
        self._kept = bytearray()  # the bytes of the current frame that have arrived
        self._size = self._left = self._position = 0
        self._is_raw = self._is_held = False

    def feed(self, data: bytes) -> bytes:
        """Process bytes that were received. Return the bytes that the caller must send now."""
        out: list[bytes | memoryview] = []
        rest = memoryview(data)
        while rest and not self._is_raw:
            if self._left:
                rest = self._continue_frame(rest, out)
                continue
            missing = self.head_struct.size - len(self._kept)
            self._kept += rest[:missing]
            rest = rest[missing:]
            if len(self._kept) >= self.head_struct.size or self._has_bad_size():
                self._begin_frame(out)
        out.append(rest)
        return b"".join(out)

    def rest(self) -> bytes:
        """Return the bytes that the stream has received but has not passed on.

        The proxy calls this method when no more bytes can arrive.
        """
        return bytes(self._kept) if self._is_held or not self._left else b""

    def _has_bad_size(self) -> bool:
        smallest = self.head_struct.size - SIZE
        return len(self._kept) >= SIZE and not smallest <= self._claimed_size() <= MAX_FRAME

    def _claimed_size(self) -> int:
        return int.from_bytes(self._kept[:SIZE], "big", signed=True)

    def _begin_frame(self, out: list[bytes | memoryview]) -> None:
        """Read the head of a frame. Then decide whether to pass it on now, or only when the frame is complete.

        The head consists of the first bytes of a frame, for example its size and its correlation id. If the bytes
        cannot be a head, the stream passes on these bytes and all later bytes unchanged.
        """
        if self._has_bad_size():
            is_tls = not self._position and self._kept.startswith(TLS_HANDSHAKE)
            what = ENCRYPTED if is_tls else "not a frame of Kafka's protocol"
            self._warn(f"byte {self._position}: {what}; all bytes from here on are passed on")
            self._is_raw = True
        else:
            self._size = self._claimed_size() + SIZE
            self._left = self._size - len(self._kept)
            self._is_held = self._must_hold() and self._size <= MAX_KEPT
        if not self._is_held:
            out.append(bytes(self._kept))
        if self._is_raw:
            self._kept.clear()
        elif not self._left:
            self._end_frame(out)

    def _continue_frame(self, data: memoryview, out: list[bytes | memoryview]) -> memoryview:
        """Process more bytes of the current frame. Return the bytes that follow the frame."""
        piece = data[: self._left]
        self._left -= len(piece)
        self._kept += piece[: max(0, MAX_KEPT - len(self._kept))]
        if not self._is_held:
            out.append(piece)
        if not self._left:
            self._end_frame(out)
        return data[len(piece) :]

    def _end_frame(self, out: list[bytes | memoryview]) -> None:
        wire = self._show_frame(memoryview(bytes(self._kept)))
        if self._is_held:
            out.append(wire)
        self._position += self._size
        self._kept.clear()
        self._is_held = False

    def _must_hold(self) -> bool:
        """Return whether the stream must keep the current frame until all bytes of the frame have arrived.

        This is necessary for a response that contains addresses of brokers. The stream can change the addresses only
        when the response is complete.
        """
        return False

    @abstractmethod
    def _show_frame(self, wire: memoryview) -> bytes | memoryview:
        """Show a frame whose bytes have all arrived, and return its bytes.

        `wire` contains the frame, or only the first MAX_KEPT bytes of a larger frame.

        If `_is_held` is true, the stream has kept the frame, and now passes on the returned bytes. In these bytes,
        the method may have replaced addresses of brokers.

        If `_is_held` is false, the stream has already passed on the frame, and ignores the returned bytes.
        """


class RequestStream(_FrameStream):
    """The stream for the direction from the client to the broker. It divides the bytes into requests."""

    head_struct = _REQUEST_HEAD

    def __init__(
        self, requests: OpenRequests, show: Callable[[SeenFrame], None], warn: Callable[[str], None]
    ) -> None:
        super().__init__(show, warn)
        self._requests = requests

    def _show_frame(self, wire: memoryview) -> memoryview:
        frame = request_frame(wire)
        correlation_id = _REQUEST_HEAD.unpack_from(wire)[3]
        has_response = not _is_produce_without_acks(frame)
        self._show(SeenFrame(frame, self._size, correlation_id, note="" if has_response else "no response requested"))
        if has_response:
            head = frame._replace(wire=wire[: _REQUEST_HEAD.size])
            self._requests.add(OpenRequest(head, correlation_id, time.monotonic()))
        return wire


class ResponseStream(_FrameStream):
    """The stream for the direction from the broker to the client. It divides the bytes into responses."""

    head_struct = _RESPONSE_HEAD

    def __init__(
        self,
        requests: OpenRequests,
        show: Callable[[SeenFrame], None],
        warn: Callable[[str], None],
        replacement: Callable[[Address, bool], Address],
    ) -> None:
        super().__init__(show, warn)
        self._requests, self._replacement = requests, replacement
        self._request: OpenRequest | None = None

    def _must_hold(self) -> bool:
        self._request = self._requests.take(_RESPONSE_HEAD.unpack_from(self._kept)[1])
        message = self._request.frame.message if self._request else None
        return message is not None and holds_addresses(response_class(message.api_key))

    def _show_frame(self, wire: memoryview) -> bytes | memoryview:
        correlation_id, request = _RESPONSE_HEAD.unpack_from(wire)[1], self._request
        if request is None:
            self._show(SeenFrame(None, self._size, correlation_id, note="a response without a known request"))
            return wire
        elapsed = time.monotonic() - request.sent_at
        frame = _response_frame(request.frame, wire)
        changed: bytes | memoryview = wire
        note = ""
        if self._is_held and frame is not None:
            changed, note = readdressed(frame, self._replacement)
        self._show(SeenFrame(frame, self._size, correlation_id, request, elapsed, note))
        return changed


def _response_frame(request: WireFrame, wire: memoryview) -> WireFrame | None:
    """Return a frame for the response to a request. Return None if HMB does not know the API or the version."""
    api_key, version = _REQUEST_HEAD.unpack_from(request.wire)[1], request.version
    message = response_class(api_key) if api_key in API_KEYS else None
    if message is ApiVersionsResponse and wire[_RESPONSE_HEAD.size :][:2] == UNSUPPORTED_VERSION:
        version = 0  # The broker does not know the version of the request, and responds in version 0.
    return WireFrame("response", wire, message, version) if message and version in message.versions else None


def _is_produce_without_acks(frame: WireFrame) -> bool:
    if frame.message is None or frame.message.api_key is not ApiKey.PRODUCE:
        return False
    try:
        return bool(frame.decode()[1].acks == Acks.NONE)
    except ProtocolError:  # The request is damaged or too large, so acks is unknown.
        return False
