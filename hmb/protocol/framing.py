"""Frames: the boundaries of messages in a stream of bytes.

    int32   number of bytes that follow, big-endian
    bytes   header and body of one request or response

TCP carries a stream without boundaries. A length before each message divides the stream into messages. For example, the
frame `00 00 00 02 | 61 62` carries the two bytes "ab".

An attacker can send any length, and four bytes can claim 2 GB. So a reader compares the length with a limit (Kafka's
`socket.request.max.bytes`). It allocates memory only for bytes that have arrived.

Source: Kafka protocol guide, "Protocol Primitive Types" and "Common Request and Response Structure".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from mmap import mmap
from typing import Protocol, TypeAlias

from hmb.protocol.errors import ProtocolError
from hmb.protocol.primitives import Part, part_size

_SIZE = struct.Struct(">i")
CHUNK = 1 << 20  # bytes; a larger frame is read in chunks of this size
Admit: TypeAlias = Callable[[int], None]  # The argument is the size of the next chunk in bytes.


def _admit_at_once(size: int) -> None:
    pass


class Stream(Protocol):
    """A source of bytes: a file, `socket.makefile("rb")`, io.BytesIO.

    `read` returns no bytes at the end of the stream. A socket with a time limit returns None when the time is over. A
    reader treats None like the end of the stream.
    """

    def read(self, size: int, /) -> bytes | None: ...

    def readinto(self, buffer: memoryview, /) -> int | None: ...


def read_frame(stream: Stream, max_size: int) -> memoryview | None:
    """Return the next frame without its length, or None if the stream ends between two frames.

    Raises ProtocolError in the same cases as `read_size` and `read_body`.
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


def read_body(stream: Stream, size: int, admit: Admit = _admit_at_once) -> memoryview:
    """Return the content of a frame. `size` is its length, which `read_size` returned.

    `admit` is called before each chunk of the frame is read. The call may wait until the broker has memory for the
    chunk. Raises ProtocolError if the stream ends inside the frame.
    """
    if size > CHUNK:
        return _read_large(stream, size, admit)
    admit(size)
    data = _read(stream, size)
    if len(data) < size:
        raise ProtocolError(_ends_early(len(data), size))
    return memoryview(data)


def _read_large(stream: Stream, size: int, admit: Admit) -> memoryview:
    """Read a large frame into memory that the operating system provides (mmap).

    The operating system provides a page when the page is first written. It takes back all pages when the last view of
    the frame is deleted. A growing `bytearray` would be copied, and the C library would keep a part of its memory.
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


def _ends_early(position: int, size: int) -> str:
    return f"stream ends inside a frame, after {position} of {size} bytes"


def frame(parts: list[Part]) -> list[Part]:
    """Return the parts of a frame: the length of the message, followed by `parts`, the parts of the message."""
    prefix = _SIZE.pack(sum(map(part_size, parts)))
    first, *rest = parts
    return [prefix + first, *rest] if isinstance(first, bytes) else [prefix, *parts]


def _read(stream: Stream, size: int) -> bytes:
    """Return `size` bytes, or fewer at the end of the stream."""
    data = stream.read(size) or b""
    while 0 < len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data
