"""The two directions of a connection that somebody looks at: bytes go in, the bytes to pass on come out.

No sockets here.  A proxy feeds each stream with what it received and sends on what it gets back.  That is the same, but
two things are kept a while: the few bytes that tell what a frame is (its head), and an answer that may have addresses
in it, until it is whole and they can be changed.  A frame is shown before its last byte is passed on, so that a request
always comes before its answer.

- Of a frame at most MAX_KEPT bytes are kept, whatever it claims to be; of a larger one the rest is passed on unseen.
- What cannot be a frame is passed on as it is, and so is all that follows: no connection breaks for being looked at.
- An answer is the one to the oldest request with its correlation id; requests before that had none (acks=0).
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from hmb.protocol.annotate import SIZE
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, ProtocolError
from hmb.protocol.messages import API_KEYS, response_class
from hmb.protocol.messages.api_versions import ApiVersionsResponse

from .frames import Frame, request_frame
from .readdressing import Address, holds_addresses, readdressed

MAX_KEPT = 4 << 20  # bytes of a frame
MAX_FRAME = 1 << 28  # bytes; brokers take 100 MB.  Four letters are a number above this
MAX_ASKED = 10_000  # requests that wait for an answer; Kafka's clients have five
UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
_REQUEST_HEAD, _RESPONSE_HEAD = Struct(">ihhi"), Struct(">ii")  # size, api key, version, correlation id; size, id


class Question(NamedTuple):
    """A request that has an answer to come."""

    frame: Frame
    correlation_id: int
    asked_at: float  # by the monotonic clock


class Seen(NamedTuple):
    """A frame that went through."""

    frame: Frame | None  # None: an answer to nothing that was seen
    size: int  # of all of it; the frame may have less
    correlation_id: int
    question: Question | None = None  # of an answer
    elapsed: float | None = None  # seconds from the question
    note: str = ""


class Asked:
    """The requests of a connection that have no answer yet, in their order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the questions: one thread adds, another takes
        self._questions: deque[Question] = deque(maxlen=MAX_ASKED)

    def add(self, question: Question) -> None:
        with self._lock:
            self._questions.append(question)

    def take(self, correlation_id: int) -> Question | None:
        """The oldest with this id, and nothing is left of those before it; None if there is none."""
        with self._lock:
            if not any(question.correlation_id == correlation_id for question in self._questions):
                return None
            while (question := self._questions.popleft()).correlation_id != correlation_id:
                pass
            return question


class _FrameStream:
    """Cuts a stream of bytes into frames."""

    head_struct: Struct

    def __init__(self, show: Callable[[Seen], None], warn: Callable[[str], None]) -> None:
        self._show, self._warn = show, warn
        self._kept = bytearray()  # of the frame that is coming in
        self._size = self._left = self._position = 0
        self._is_raw = self._is_held = False

    def feed(self, data: bytes) -> bytes:
        """What to pass on now."""
        out: list[bytes | memoryview] = []
        rest = memoryview(data)
        while rest and not self._is_raw:
            if self._left:
                rest = self._go_on(rest, out)
                continue
            wanted = self.head_struct.size - len(self._kept)
            self._kept += rest[:wanted]
            rest = rest[wanted:]
            if len(self._kept) >= self.head_struct.size or self._has_bad_size():
                self._begin(out)
        out.append(rest)
        return b"".join(out)

    def rest(self) -> bytes:
        """What is still kept, at the end of the stream."""
        return bytes(self._kept) if self._is_held or not self._left else b""

    def _has_bad_size(self) -> bool:
        smallest = self.head_struct.size - SIZE
        return len(self._kept) >= SIZE and not smallest <= self._claimed() <= MAX_FRAME

    def _claimed(self) -> int:
        return int.from_bytes(self._kept[:SIZE], "big", signed=True)

    def _begin(self, out: list[bytes | memoryview]) -> None:
        """The head is here."""
        if self._has_bad_size():
            self._warn(
                f"byte {self._position}: no frame of Kafka's protocol; this and what follows is passed on as it is"
            )
            self._is_raw = True
        else:
            self._size = self._claimed() + SIZE
            self._left = self._size - len(self._kept)
            self._is_held = self._must_hold() and self._size <= MAX_KEPT
        if not self._is_held:
            out.append(bytes(self._kept))
        if self._is_raw:
            self._kept.clear()
        elif not self._left:
            self._end(out)

    def _go_on(self, data: memoryview, out: list[bytes | memoryview]) -> memoryview:
        """More of the frame has come; returns what is behind it."""
        piece = data[: self._left]
        self._left -= len(piece)
        self._kept += piece[: max(0, MAX_KEPT - len(self._kept))]
        if not self._is_held:
            out.append(piece)
        if not self._left:
            self._end(out)
        return data[len(piece) :]

    def _end(self, out: list[bytes | memoryview]) -> None:
        wire = self._seen(memoryview(bytes(self._kept)))
        if self._is_held:
            out.append(wire)
        self._position += self._size
        self._kept.clear()
        self._is_held = False

    def _must_hold(self) -> bool:
        """Whether the frame, whose head is here, is passed on only when it is whole."""
        return False

    def _seen(self, wire: memoryview) -> bytes | memoryview:
        """Show the frame, of which `wire` was kept; returns it, as it is passed on if it was held."""
        raise NotImplementedError


class RequestStream(_FrameStream):
    """From the client to the broker."""

    head_struct = _REQUEST_HEAD

    def __init__(self, asked: Asked, show: Callable[[Seen], None], warn: Callable[[str], None]) -> None:
        super().__init__(show, warn)
        self._asked = asked

    def _seen(self, wire: memoryview) -> memoryview:
        frame = request_frame(wire)
        correlation_id = _REQUEST_HEAD.unpack_from(wire)[3]
        is_answered = not _is_produce_without_acks(frame)
        self._show(Seen(frame, self._size, correlation_id, note="" if is_answered else "no answer wanted"))
        if is_answered:
            self._asked.add(Question(frame._replace(wire=wire[: _REQUEST_HEAD.size]), correlation_id, time.monotonic()))
        return wire


class ResponseStream(_FrameStream):
    """From the broker to the client."""

    head_struct = _RESPONSE_HEAD

    def __init__(
        self,
        asked: Asked,
        show: Callable[[Seen], None],
        warn: Callable[[str], None],
        address: Callable[[Address, bool], Address],
    ) -> None:
        super().__init__(show, warn)
        self._asked, self._address = asked, address
        self._question: Question | None = None

    def _must_hold(self) -> bool:
        self._question = self._asked.take(_RESPONSE_HEAD.unpack_from(self._kept)[1])
        message = self._question.frame.message if self._question else None
        return message is not None and holds_addresses(response_class(message.api_key))

    def _seen(self, wire: memoryview) -> bytes | memoryview:
        correlation_id, question = _RESPONSE_HEAD.unpack_from(wire)[1], self._question
        if question is None:
            self._show(Seen(None, self._size, correlation_id, note="an answer to no request that was seen"))
            return wire
        elapsed = time.monotonic() - question.asked_at
        frame = _answer(question.frame, wire)
        changed: bytes | memoryview = wire
        note = ""
        if self._is_held and frame is not None:
            changed, note = readdressed(frame, self._address)
        self._show(Seen(frame, self._size, correlation_id, question, elapsed, note))
        return changed


def _answer(asked: Frame, wire: memoryview) -> Frame | None:
    """The bytes as the answer to a request; None where nothing is known of its API or version."""
    api_key, version = _REQUEST_HEAD.unpack_from(asked.wire)[1], asked.version
    message = response_class(api_key) if api_key in API_KEYS else None
    if message is ApiVersionsResponse and wire[_RESPONSE_HEAD.size :][:2] == UNSUPPORTED_VERSION:
        version = 0  # a broker that does not know the version of the question
    return Frame("response", wire, message, version) if message and version in message.versions else None


def _is_produce_without_acks(frame: Frame) -> bool:
    if frame.message is None or frame.message.api_key is not ApiKey.PRODUCE:
        return False
    try:
        return bool(frame.decode()[1].acks == 0)
    except ProtocolError:  # too large to be kept, or broken: an answer will tell
        return False
