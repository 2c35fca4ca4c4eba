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
from mmap import mmap
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

    No bytes mean its end, and so does None: a socket with a time limit of its own returns it when the time is over.
    """

    def read(self, size: int, /) -> bytes | None: ...

    def readinto(self, buffer: memoryview, /) -> int | None: ...


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
    if size > CHUNK:
        return _read_large(stream, size, admit)
    admit(size)
    data = _read(stream, size)
    if len(data) < size:
        raise ProtocolError(_ends_early(len(data), size))
    return memoryview(data)


def _read_large(stream: Stream, size: int, admit: Admit) -> memoryview:
    """Read into memory of the operating system's.

    It hands out pages as they are written to, and gets all of them back when the last view of the frame is gone.
    Python's own memory would be copied as it grows, and the C library keeps a part of it.
    """
    frame, position, end = memoryview(mmap(-1, size)), 0, 0
    while position < size:
        if position == end:
            end = min(end + CHUNK, size)
            admit(end - position)
        read = stream.readinto(frame[position:end])
        if not read:
            raise ProtocolError(_ends_early(position, size))
        position += read
    return frame.toreadonly()


def _ends_early(here: int, size: int) -> str:
    return f"stream ends inside a frame, after {here} of {size} bytes"


def frame(parts: list[Part]) -> list[Part]:
    """The parts of one message with their length in front."""
    prefix = _SIZE.pack(sum(map(part_size, parts)))
    first, *rest = parts
    return [prefix + first, *rest] if isinstance(first, bytes) else [prefix, *parts]


def _read(stream: Stream, size: int) -> bytes:
    """Return `size` bytes, fewer only at the stream's end."""
    data = stream.read(size) or b""
    while 0 < len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data
