"""Frames: a length before each message shows where the message ends in a stream of bytes.

A frame has two parts:
    int32   length: the number of bytes that follow, big-endian
    bytes   header and body of one request or response

TCP transports a stream of bytes, and does not show where a message begins or ends. So the sender writes the length of
each message before the message. For example, the frame `00 00 00 02 | 61 62` contains a message of two bytes, "ab".

An attacker can send a frame with a false length. With only four bytes, the attacker can announce a message of 2 GB. If
the reader allocated memory for the whole message at once, a few such frames could use up its memory. The reader
therefore rejects a length above a limit (Kafka's `socket.request.max.bytes`), and allocates memory only for bytes that
have arrived.

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
LENGTH_SIZE = _SIZE.size  # 4 bytes: the length before each message
TLS_HANDSHAKE = b"\x16\x03"  # the first bytes of a connection with TLS
TLS_HINT = "; the bytes look like a TLS handshake, but this listener has no TLS: connect without TLS or to another port"
CHUNK = 1 << 20  # bytes; the broker reads a larger request in chunks of this size
# The client reads a response of at most this size (bytes) at once. This is faster than reading in chunks, because the C
# library can use the memory of an earlier response again. A usual Fetch response contains 1 MiB of records and a few
# other fields. With a limit of 2 MiB instead of 1 MiB, a consumer of Arrow batches takes a quarter less time (measured
# with pandas imported).
LARGE_RESPONSE = 2 * CHUNK
Reserve: TypeAlias = Callable[[int], None]  # The argument is the size of the next chunk in bytes.


def _reserve_nothing(size: int) -> None:
    pass


class Stream(Protocol):
    """An object from which bytes can be read, such as a binary file, `socket.makefile("rb")` or an io.BytesIO.

    At the end of the stream, `read` returns an empty byte string. With a time limit, the methods can also return
    None if no bytes arrive in time. The functions of this module treat None like the end of the stream.
    """

    def read(self, size: int, /) -> bytes | None: ...

    def readinto(self, buffer: memoryview, /) -> int | None: ...


def read_frame(stream: Stream, max_size: int) -> memoryview | None:
    """Return the message in the next frame, or None if the stream has ended and no frame follows.

    Raises ProtocolError in the same cases as `read_size` and `read_body`.
    """
    size = read_size(stream, max_size)
    return None if size is None else read_body(stream, size, large=LARGE_RESPONSE)


def read_size(stream: Stream, max_size: int) -> int | None:
    """Return the length of the next frame, or None if the stream has ended and no frame follows.

    Raises ProtocolError if the length is negative or above `max_size`, or if the stream ends inside the length.
    """
    prefix = _read(stream, _SIZE.size)
    if not prefix:
        return None
    if len(prefix) < _SIZE.size:
        raise ProtocolError(f"stream ends inside a frame's length, after {len(prefix)} of {_SIZE.size} bytes")
    size: int = _SIZE.unpack(prefix)[0]
    if not 0 <= size <= max_size:
        hint = TLS_HINT if prefix.startswith(TLS_HANDSHAKE) else ""
        raise ProtocolError(f"the length of a frame is {size} bytes, but must be 0 to {max_size} bytes{hint}")
    return size


def read_body(stream: Stream, size: int, reserve: Reserve = _reserve_nothing, *, large: int = CHUNK) -> memoryview:
    """Return the message in a frame. `size` is the length in bytes that `read_size` has returned.

    Raises ProtocolError if the stream ends before the end of the message.

    If `size` is greater than `large`, the function reads the message in chunks. Before it reads a chunk or a whole
    message, it calls `reserve` with the number of bytes. The broker's `reserve` waits until it has enough memory.
    """
    if size > large:
        return _read_large(stream, size, reserve)
    reserve(size)
    data = _read(stream, size)
    if len(data) < size:
        raise ProtocolError(_ends_early(len(data), size))
    return memoryview(data)


def _read_large(stream: Stream, size: int, reserve: Reserve) -> memoryview:
    """Read a message in chunks, into memory that comes directly from the operating system (mmap).

    The function calls `reserve` before each chunk. Raises ProtocolError if the stream ends before the message ends.

    The system provides a page of this memory at the first write, and gets all pages back when the last memoryview
    is deleted. A `bytearray` is worse: Python copies it as it grows, and the C library can keep deleted memory.
    """
    frame, position, end = memoryview(mmap(-1, size)), 0, 0
    while position < size:
        if position == end:
            end = min(end + CHUNK, size)
            reserve(end - position)
        read = stream.readinto(frame[position:end])
        if not read:
            raise ProtocolError(_ends_early(position, size))
        position += read
    return frame.toreadonly()


def _ends_early(position: int, size: int) -> str:
    return f"stream ends inside a frame, after {position} of {size} bytes"


def frame(parts: list[Part]) -> list[Part]:
    """Return the parts of a frame: the length of the message, and then the parts of the message itself."""
    prefix = _SIZE.pack(sum(map(part_size, parts)))
    first, *rest = parts
    return [prefix + first, *rest] if isinstance(first, bytes) else [prefix, *parts]


def _read(stream: Stream, size: int) -> bytes:
    """Return `size` bytes, or fewer bytes if the stream ends."""
    data = stream.read(size) or b""
    while 0 < len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data
