"""Tests for the second exercise of lab 8.

In each test, `answer` is the student's module `second.py`, `rng` generates random test cases, and `tmp_path` is an
empty folder.
"""

import os
import socket
import threading

import pytest

from hmb.labs.random_file import random_file

SIZE = 1_000_000  # the size of the file in bytes
LIMIT = 3.0  # seconds: the check fails if a call has not ended after this time


@pytest.fixture
def data(tmp_path, rng):
    """Yield the content of a new file, and a descriptor of the open file."""
    with random_file(tmp_path, rng, SIZE) as found:
        yield found


class Pair:
    """Two connected non-blocking sockets with small buffers. A call of a non-blocking socket never waits."""

    def __init__(self):
        self.here, self.there = socket.socketpair()
        self.here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        self.here.setblocking(False)
        self.there.setblocking(False)
        self.arrived = b""

    def read(self, count):
        """Let the receiver read up to `count` bytes, and return how many bytes this call has read."""
        try:
            chunk = self.there.recv(count)
        except BlockingIOError:
            return 0
        self.arrived += chunk
        return len(chunk)


def write(response, connection, case):
    """Call `response.write(connection)`, and return its result.

    The check fails if this call raises an exception, or takes longer than `LIMIT` seconds. Each error message
    begins with `case`, a description of the test case.
    """
    found = []

    def call():
        try:
            found.append(response.write(connection))
        except Exception as error:  # noqa: BLE001  # The student's code may raise any exception.
            found.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert found, f"{case}: write waits until the receiver reads; it must return False"
    assert not isinstance(found[0], Exception), f"{case}: write raises {type(found[0]).__name__}: {found[0]}"
    return found[0]


def send(answer, data, parts, count, case, step):
    """Send a response of `count` bytes, and return the bytes that arrive.

    After each call of `Response.write`, the receiver reads up to `step` bytes. The check fails if more than
    `count` bytes arrive.
    """
    pair, response, is_complete = Pair(), answer.Response(data[1], list(parts)), False
    while not is_complete and len(pair.arrived) <= count:
        is_complete = write(response, pair.here, case)
        if not pair.read(step):
            break
    while pair.read(step):
        pass
    arrived = len(pair.arrived)
    assert arrived <= count, f"{case}: {arrived:,} bytes arrive, so write sends some bytes again"
    assert is_complete is True, f"{case}: write returns {is_complete!r}, although the receiver has read all bytes"
    return pair.arrived


def compare(answer, data, parts, step=100_000):
    expected = b"".join(part if isinstance(part, bytes) else data[0][part[0] : part[0] + part[1]] for part in parts)
    shown = ", ".join(f"{len(part)} bytes" if isinstance(part, bytes) else f"file range {part}" for part in parts)
    case = f"a response of {shown or 'no parts'}, and a receiver that reads {step:,} bytes at a time"
    arrived = send(answer, data, parts, len(expected), case, step)
    same = next((at for at, (a, b) in enumerate(zip(arrived, expected, strict=False)) if a != b), len(expected))
    assert len(arrived) == len(expected), f"{case}: {len(arrived):,} bytes arrive (right: {len(expected):,})"
    assert same == len(expected), f"{case}: the bytes from {same:,} on are wrong"


def test_small_parts(answer, data):
    """`write` sends the parts of a response in their order.

    A part is a bytes object or a range of a file. It may be empty.
    """
    compare(answer, data, [b"head"])
    compare(answer, data, [b"head", (100, 50), b"", (0, 0), (7, 20), b"tail"])
    compare(answer, data, [])


def test_large_parts(answer, data, rng):
    """Every byte arrives exactly once, even if the connection accepts only a few bytes at a time."""
    compare(answer, data, [(0, SIZE)])
    compare(answer, data, [rng.randbytes(300_000)])
    compare(answer, data, [b"head", (10, 200_000), rng.randbytes(100_000), (500_000, 100_000)], 3000)


def test_write_never_waits(answer, data):
    """If a connection accepts no more bytes, `write` returns False at once, so that no other connection is delayed."""
    slow, fast = Pair(), Pair()
    large, small = answer.Response(data[1], [b"head", (0, SIZE)]), answer.Response(data[1], [b"small"])
    found = write(large, slow.here, f"a receiver that never reads, and a response of {SIZE:,} bytes")
    assert found is False, f"a receiver that never reads, and a response of {SIZE:,} bytes: write returns {found!r}"
    again = write(large, slow.here, "a second call of write, and the connection is still full")
    assert again is False, f"a second call of write, and the connection is still full: write returns {again!r}"
    assert write(small, fast.here, "another connection") is True, "another connection with 5 bytes: write returns True"
    fast.read(100)
    assert fast.arrived == b"small", f"another connection: {fast.arrived!r} arrives"


def test_complete_responses(answer, data):
    """When all bytes are sent, `write` returns True. Further calls also return True, and send nothing."""
    pair, response = Pair(), answer.Response(data[1], [b"head", (0, 4)])
    results = [write(response, pair.here, "a response of 8 bytes") for _ in range(3)]
    pair.read(100)
    assert results == [True] * 3, f"three calls of write for 8 bytes return {results}"
    assert len(pair.arrived) == 8, f"three calls of write for 8 bytes: {len(pair.arrived)} bytes arrive"


def test_no_copy(answer, data, monkeypatch):
    """When `write` sends a range of a file, it reads no bytes of the file into the program's memory."""

    def refuse(*arguments):
        raise AssertionError("the method `write` reads the file into memory; call os.sendfile instead")

    for name in ("read", "pread", "readv", "preadv", "fdopen"):
        monkeypatch.setattr(os, name, refuse)
    compare(answer, data, [b"head", (0, 100_000)])


def test_a_short_file(answer, data):
    """If the file ends before the end of a range, `write` raises EOFError instead of trying again forever."""
    pair, response, found = Pair(), answer.Response(data[1], [(SIZE - 10, 20)]), []

    def call():
        try:
            found.append(response.write(pair.here))
        except Exception as error:  # noqa: BLE001  # The student's code may raise any exception.
            found.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(LIMIT)
    case = "the file has only 10 of 20 bytes of a range"
    assert found, f"{case}: write does not end"
    assert isinstance(found[0], EOFError), f"{case}: write raises EOFError, and its result is not {found[0]!r}"
