"""Frames: how messages are told apart in a stream of bytes.

    int32   size of what follows, big-endian
    bytes   header and body of one request or response

TCP carries a stream without marks; a length in front of each message makes it a row of messages.  The length is also
the first thing an attacker lies about: four bytes can claim 2 GB.  So it is compared with a limit (Kafka's
`socket.request.max.bytes`) and memory grows only with the bytes that really came.

Source: Kafka protocol guide, "Protocol Primitive Types" and "Common Request and Response Structure".
"""

import struct
from collections.abc import Callable
from typing import Protocol, TypeAlias

from hmb.protocol.errors import ProtocolError
from hmb.protocol.primitives import Part, part_size

_SIZE = struct.Struct(">i")
CHUNK = 1 << 20  # bytes: a larger frame is read in chunks of this size, so that memory grows as its bytes arrive
Admit: TypeAlias = Callable[[int], None]  # takes the size of the next chunk


def _at_once(size: int) -> None:
    pass


class Stream(Protocol):
    """A source of bytes: a file, `socket.makefile("rb")`, io.BytesIO.

    Empty bytes mean its end, and so does None: a socket with a time limit of its own gives it when nothing came.
    """

    def read(self, size: int, /) -> bytes | None: ...


def read_frame(stream: Stream, max_size: int) -> memoryview | None:
    """Return the next frame without its length, or None if the stream ends between two frames.

    Raises ProtocolError as `read_size` and `read_body` do.
    """
    size = read_size(stream, max_size)
    return None if size is None else read_body(stream, size)


def read_size(stream: Stream, max_size: int) -> int | None:
    """Return the length of the next frame, or None if the stream ends between two frames.

    Raises ProtocolError for a length that is negative or above `max_size`, and if the stream ends inside the length.
    """
    prefix = _read(stream, _SIZE.size)
    if not prefix:
        return None
    if len(prefix) < _SIZE.size:
        raise ProtocolError(f"stream ends inside a frame's length, after {len(prefix)} of {_SIZE.size} bytes")
    size: int = _SIZE.unpack(prefix)[0]
    if not 0 <= size <= max_size:
        raise ProtocolError(f"frame of {size} bytes (allowed are 0 to {max_size})")
    return size


def read_body(stream: Stream, size: int, admit: Admit = _at_once) -> memoryview:
    """Return a frame, whose length was read already.

    `admit` is called before each chunk of the frame is read.  It may wait until there is room for the chunk.  Raises
    ProtocolError if the stream ends inside the frame.
    """
    data = _read(stream, size, admit)
    if len(data) < size:
        raise ProtocolError(f"stream ends inside a frame, after {len(data)} of {size} bytes")
    return memoryview(data).toreadonly()


def frame(parts: list[Part]) -> list[Part]:
    """The parts of one message with their length in front."""
    prefix = _SIZE.pack(sum(map(part_size, parts)))
    first, *rest = parts
    return [prefix + first, *rest] if isinstance(first, bytes) else [prefix, *parts]


def _read(stream: Stream, size: int, admit: Admit = _at_once) -> bytes | bytearray:
    """Return `size` bytes, fewer only at the stream's end."""
    chunk = min(size, CHUNK)
    admit(chunk)
    data = stream.read(chunk) or b""
    if len(data) == size or not data:
        return data
    grown = bytearray(data)
    while len(grown) < size:
        chunk = min(size - len(grown), CHUNK)
        admit(chunk)
        if not (more := stream.read(chunk)):
            break
        grown += more
    return grown
