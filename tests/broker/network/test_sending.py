"""Tests of responses to clients that read slowly, or never."""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hmb.broker.network import sending
from hmb.broker.network.connection import _timeval
from hmb.broker.network.sending import send
from hmb.broker.old_clients import ConvertedRecords
from hmb.protocol.primitives import Part
from hmb.records import Record, encode_batch
from hmb.records.legacy.down_conversion import DownConversion
from hmb.storage.files.virtual import FileRegion, VirtualFile
from tests.waiting import until

SIZE = 20 << 20  # bytes, more than a socket's buffers can hold
BATCH = encode_batch([Record(value=bytes(500_000))])


def as_bytes(_: Path) -> Part:
    return bytes(SIZE)


def as_region(directory: Path) -> Part:
    path = directory / "00000000000000000000.log"
    path.write_bytes(bytes(SIZE))
    return FileRegion(VirtualFile(path, exists=True), 0, SIZE)


def as_conversion(_: Path) -> Part:
    count = SIZE // len(BATCH)
    read = lambda size, at: (BATCH * count)[at : at + size]  # noqa: E731
    return ConvertedRecords(DownConversion(read, range(count * len(BATCH)), 1, 0, 1 << 30))


KINDS = [as_bytes, as_region, as_conversion]
Kind = Callable[[Path], Part]
Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Yield both ends of a connection: the broker's socket and the client's socket.

    Calls on the broker's socket wait for at most 50 ms.
    """
    broker, client = socket.socketpair()
    broker.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(0.05))
    with broker, client:
        yield broker, client


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_arrives_unchanged(
    ends: Ends, tmp_path: Path, kind: Kind
) -> None:
    broker, client = ends
    part = kind(tmp_path)
    expected = SIZE if kind is not as_conversion else part.size  # type: ignore[union-attr]
    sender = threading.Thread(target=send, args=(broker, [b"head", part, b"tail"]))
    sender.start()
    with client.makefile("rb") as stream:
        assert stream.read(4) == b"head"
        assert len(stream.read(expected)) == expected
        assert stream.read(4) == b"tail"
    sender.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_never_reads_is_given_up(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 0.3)
    monkeypatch.setattr(sending, "SLOWEST", 1 << 30)
    with pytest.raises(TimeoutError, match=r"the client took \d+ bytes of a response in"):
        send(ends[0], [b"head", kind(tmp_path)])


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_limit_covers_the_whole_response_to_a_slow_reader(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    """The time limit for sending a response covers the whole response.

    Before a bug was fixed, the time limit of 30 s started again whenever the client read a part of the response. In one
    case, the broker gave up only after 123 s.
    """
    monkeypatch.setattr(sending, "PATIENCE", 0.3)
    monkeypatch.setattr(sending, "SLOWEST", 1 << 30)
    broker, client = ends
    is_over = threading.Event()

    def drip() -> None:
        # The client reads every 20 ms. A send call of the broker times out only after 50 ms.
        while not is_over.wait(0.02):
            client.recv(8_000)

    reader = threading.Thread(target=drip)
    reader.start()
    try:
        with pytest.raises(TimeoutError):
            send(broker, [kind(tmp_path)])
    finally:
        is_over.set()
        reader.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_takes_enough_may_be_as_slow_as_its_network(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 0.1)
    monkeypatch.setattr(sending, "SLOWEST", 100_000)
    broker, client = ends
    part = kind(tmp_path)
    sender = threading.Thread(target=send, args=(broker, [part]))
    sender.start()
    left = SIZE if kind is not as_conversion else part.size  # type: ignore[union-attr]
    pause = threading.Event()
    while left:
        left -= len(client.recv(1 << 20))
        pause.wait(0.01)  # seconds; all pauses together are longer than PATIENCE
    sender.join()


def test_the_time_that_a_conversion_takes_is_not_the_client_s(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = itertools.count()
    monkeypatch.setattr(sending, "monotonic", lambda: 3600.0 * now)
    now = next(hours)
    conversion = as_conversion(Path())
    assert isinstance(conversion, ConvertedRecords)
    pieces = conversion.pieces()

    def slowly() -> Iterator[bytes | memoryview]:
        nonlocal now
        for piece in pieces:
            now = next(hours)
            yield piece

    monkeypatch.setattr(ConvertedRecords, "pieces", lambda self: slowly())
    sender = threading.Thread(target=send, args=(ends[0], [conversion]))
    sender.start()
    with ends[1].makefile("rb") as stream:
        assert len(stream.read(conversion.size)) == conversion.size
    sender.join()


def test_a_client_that_leaves_ends_its_conversion(ends: Ends) -> None:
    broker, client = ends
    conversion = as_conversion(Path())
    closed = threading.Event()
    assert isinstance(conversion, ConvertedRecords)
    pieces = conversion.pieces

    def noted() -> Iterator[bytes | memoryview]:
        try:
            yield from pieces()
        finally:
            closed.set()

    conversion.pieces = noted  # type: ignore[method-assign, assignment]

    def leave() -> None:
        client.recv(100)
        client.close()

    reader = threading.Thread(target=leave)
    reader.start()
    with pytest.raises(OSError):
        send(broker, [conversion])
    assert closed.is_set()
    reader.join()


def test_a_file_that_was_cut_off_is_an_error(ends: Ends, tmp_path: Path) -> None:
    region = as_region(tmp_path)
    os.truncate(tmp_path / "00000000000000000000.log", 100)
    with pytest.raises(OSError, match="ends at 100"):
        send(ends[0], [region])
    until(lambda: len(ends[1].recv(200)) == 100)
