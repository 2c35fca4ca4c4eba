"""Tests for the requirements of lab 8.

In each test, `answer` is the student's module `answer.py`, `rng` generates random test cases, and `tmp_path` is an
empty folder.
"""

import os
import socket
import threading
import time
import tracemalloc
import zlib

import pytest

from hmb.labs.random_file import random_file

SIZE = 3_000_000  # the size of the file in bytes


@pytest.fixture
def data(tmp_path, rng):
    """Yield the content of a new file, and a descriptor of the open file."""
    with random_file(tmp_path, rng, SIZE) as found:
        yield found


def transferred(send, descriptor, offset, count, *, pause=0.0, keep=True):
    """Call `send` with a connection that has a small send buffer. Return the result of `send` and the received bytes.

    The receiver sleeps for `pause` seconds after each chunk that it receives. If `keep` is false, the receiver
    discards the bytes, and the second return value is empty.
    """
    here, there = socket.socketpair()
    here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    arrived = bytearray()

    def receive():
        while chunk := there.recv(50_000):
            arrived.extend(chunk if keep else b"")
            time.sleep(pause)

    reader = threading.Thread(target=receive, daemon=True)
    reader.start()
    try:
        result = send(descriptor, here, offset, count)
    finally:
        here.close()
        reader.join(10)
        there.close()
    return result, bytes(arrived)


def check_parts(name, send, data):
    content, descriptor = data
    for offset, count in ((0, 10), (5, 10), (0, 0), (1000, 200_000), (0, SIZE), (SIZE - 5, 5)):
        result, arrived = transferred(send, descriptor, offset, count)
        case = f"{name}(file of {SIZE:,} bytes, offset {offset:,}, count {count:,})"
        assert len(arrived) == count, f"{case}: {len(arrived):,} bytes arrive"
        assert arrived == content[offset : offset + count], f"{case}: other bytes arrive; the first are {arrived[:8]!r}"
        assert result == count, f"{case} returns {result!r} (right: {count})"


def test_copy(answer, data):
    """`send_copy` sends exactly the bytes from `offset` to `offset + count`, and returns their number."""
    check_parts("send_copy", answer.send_copy, data)


def test_zero_copy(answer, data):
    """`send_zero_copy` sends exactly the bytes from `offset` to `offset + count`, and returns their number."""
    check_parts("send_zero_copy", answer.send_zero_copy, data)


def test_slow_reader(answer, data):
    """A receiver that reads slowly gets all bytes."""
    content, descriptor = data
    for name in ("send_copy", "send_zero_copy"):
        result, arrived = transferred(getattr(answer, name), descriptor, 100, 500_000, pause=0.005)
        case = f"{name}(offset 100, count 500,000), with a slow reader"
        assert arrived == content[100:500_100], f"{case}: {len(arrived):,} bytes arrive"
        assert result == 500_000, f"{case} returns {result!r} (right: 500000)"


def test_short_calls(answer, data, monkeypatch):
    """`send_copy` and `send_zero_copy` send all bytes, even if a system call transfers fewer bytes than requested."""
    content, descriptor = data
    sendfile, pread = os.sendfile, os.pread
    monkeypatch.setattr(os, "sendfile", lambda out, source, at, count: sendfile(out, source, at, min(count, 9000)))
    monkeypatch.setattr(os, "pread", lambda source, count, offset: pread(source, min(count, 9000), offset))
    for name in ("send_copy", "send_zero_copy"):
        result, arrived = transferred(getattr(answer, name), descriptor, 100, 50_000)
        case = f"{name}(offset 100, count 50,000), with a system that transfers 9,000 bytes in a call"
        assert arrived == content[100:50_100], f"{case}: {len(arrived):,} bytes arrive"
        assert result == 50_000, f"{case} returns {result!r} (right: 50000)"


def test_end_of_file(answer, data):
    """If the file ends before `offset + count`, `send_copy` and `send_zero_copy` stop at the end of the file.

    They return the number of bytes that they have sent.
    """
    content, descriptor = data
    for name in ("send_copy", "send_zero_copy"):
        for offset, expected in ((SIZE - 10, 10), (SIZE, 0), (SIZE + 10, 0)):
            result, arrived = transferred(getattr(answer, name), descriptor, offset, 100)
            case = f"{name}(file of {SIZE:,} bytes, offset {offset:,}, count 100)"
            assert result == expected, f"{case} returns {result!r} (right: {expected})"
            assert arrived == content[offset : offset + 100], f"{case}: {len(arrived)} bytes arrive"


def test_the_position(answer, data):
    """`send_copy`, `send_zero_copy` and `checksum` do not move the position of the open file."""
    _, descriptor = data
    for name in ("send_copy", "send_zero_copy", "checksum"):
        os.lseek(descriptor, 77, os.SEEK_SET)
        if name == "checksum":
            answer.checksum(descriptor, 1000, 5000)
        else:
            transferred(getattr(answer, name), descriptor, 1000, 5000)
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        assert position == 77, f"{name} moves the position of the file from 77 to {position}; use os.pread"


def test_memory(answer, data):
    """`send_copy` and `checksum` use less than 1 MB of memory for a file of 3 MB."""
    _, descriptor = data
    for name, call in (
        ("send_copy", lambda: transferred(answer.send_copy, descriptor, 0, SIZE, keep=False)),
        ("checksum", lambda: answer.checksum(descriptor, 0, SIZE)),
    ):
        tracemalloc.start()
        call()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1_000_000, f"{name} needs {peak / 1e6:.1f} MB for 3 MB; read at most 64 KiB at a time"


def test_no_copy(answer, data, monkeypatch):
    """`send_zero_copy` does not read the file into the memory of the program."""
    _, descriptor = data

    def refuse(*arguments):
        raise AssertionError("send_zero_copy reads bytes of the file; os.sendfile sends them without reading")

    for name in ("read", "pread", "readv", "preadv", "fdopen"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr("builtins.open", refuse)
    result, _ = transferred(answer.send_zero_copy, descriptor, 0, 100_000)
    assert result == 100_000, f"send_zero_copy(offset 0, count 100,000) returns {result!r}"


def test_checksum(answer, data, rng):
    """`checksum` returns the CRC-32 of `count` bytes of the file, starting at `offset`."""
    content, descriptor = data
    for offset, count in ((0, 0), (0, 1), (10, 100_000), (0, SIZE), (SIZE - 5, 100), (rng.randrange(SIZE), 70_000)):
        found, expected = answer.checksum(descriptor, offset, count), zlib.crc32(content[offset : offset + count])
        case = f"checksum(file of {SIZE:,} bytes, offset {offset:,}, count {count:,})"
        assert found == expected, f"{case} returns {found!r} (right: {expected})"
