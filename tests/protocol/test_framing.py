"""Tests of the reader of frames: it accepts bytes that arrive in small pieces, and rejects wrong lengths."""

import io
import tracemalloc

import pytest

from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import frame, read_frame

LIMIT = 1 << 26


class Trickle(io.RawIOBase):
    """A stream that returns one byte at each read, like a very slow network."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.data.read(min(1, len(buffer)))
        buffer[: len(data)] = data
        return len(data)


@pytest.mark.parametrize("stream_of", [io.BytesIO, Trickle, lambda data: io.BufferedReader(Trickle(data))])
def test_frames_one_after_another(stream_of: type[io.BytesIO]) -> None:
    stream = stream_of(b"\0\0\0\3abc" + b"\0\0\0\0" + b"\0\0\0\1d")
    assert [read_frame(stream, LIMIT) for _ in range(4)] == [b"abc", b"", b"d", None]


@pytest.mark.parametrize("stream_of", [io.BytesIO, Trickle])
def test_the_stream_ends_inside_a_frame(stream_of: type[io.BytesIO]) -> None:
    whole = b"\0\0\0\3abc"
    for end in range(1, len(whole)):
        with pytest.raises(ProtocolError, match=f"after {end if end < 4 else end - 4} of {4 if end < 4 else 3} bytes"):
            read_frame(stream_of(whole[:end]), LIMIT)


@pytest.mark.parametrize("prefix", ["ffffffff", "80000000", "7fffffff", "04000001"])
def test_lengths_that_are_not_allowed(prefix: str) -> None:
    with pytest.raises(ProtocolError, match=r"the length of a frame is -?\d+ bytes, but must be 0 to 67108864 bytes"):
        read_frame(io.BytesIO(bytes.fromhex(prefix) + b"x"), LIMIT)


def test_a_frame_of_the_largest_size() -> None:
    data = bytes(3 << 20)
    whole = read_frame(io.BytesIO(len(data).to_bytes(4, "big") + data), len(data))
    assert whole is not None
    assert whole.tobytes() == data


def test_a_claimed_length_allocates_little() -> None:
    stream = io.BytesIO(b"\x7f\xff\xff\xff" + bytes(1000))
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="after 1000 of 2147483647 bytes"):
        read_frame(stream, 2**31 - 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


class InFile:
    size = 1000


def test_frame_puts_the_length_of_all_parts_in_front() -> None:
    piece = InFile()
    assert frame([b"head", piece, b"tail"]) == [b"\0\0\3\xf0head", piece, b"tail"]
    assert frame([memoryview(b"abc")]) == [b"\0\0\0\3", b"abc"]
