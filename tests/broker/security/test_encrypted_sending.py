"""Tests of responses over TLS: the broker encrypts the parts of a response together."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hmb.broker.network import sending
from hmb.broker.network.sending import send
from hmb.broker.security.tls import MAX_ENCRYPTED_AT_ONCE, TlsListener, TlsSocket, shake_hands
from hmb.protocol.primitives import Part
from hmb.security.certificates import Certificates
from hmb.security.stores import TlsSettings
from hmb.storage.files.virtual import FileRegion, VirtualFile
from tests.broker.security.conftest import client_context, tls_settings

Ends = tuple[TlsSocket, ssl.SSLSocket]


@pytest.fixture
def ends(certificates: Certificates) -> Iterator[Ends]:
    """Yield the broker's socket and the client's socket of a connection with TLS, after the handshake."""
    listener = TlsListener(TlsSettings.from_properties(tls_settings(certificates)), "none")
    one, other = socket.socketpair()
    with listener.encrypted(one) as broker, ThreadPoolExecutor(1) as pool:
        handshake = pool.submit(shake_hands, broker, 30)
        with client_context(certificates).wrap_socket(other, server_hostname="localhost") as client:
            handshake.result()
            yield broker, client


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many bytes each call of `TlsSocket.send` sends. Return the list of these numbers."""
    sizes: list[int] = []
    send_some = TlsSocket.send

    def noted(broker: TlsSocket, data: Any, flags: int = 0) -> int:
        sizes.append(send_some(broker, data, flags))
        return sizes[-1]

    monkeypatch.setattr(TlsSocket, "send", noted)
    return sizes


def stored(directory: Path, content: bytes) -> VirtualFile:
    path = directory / "00000000000000000000.log"
    path.write_bytes(content)
    return VirtualFile(path, exists=True)


def received(ends: Ends, parts: Sequence[Part], size: int) -> bytes:
    """Send a response, and return the bytes that the client receives."""
    broker, client = ends
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send, broker, parts)
        with client.makefile("rb") as stream:
            content = stream.read(size)
        sent.result()
    return content


def test_small_parts_are_encrypted_together(ends: Ends, tmp_path: Path, sizes: list[int]) -> None:
    file = stored(tmp_path, bytes(range(100)))
    parts: list[Part] = [part for number in range(100) for part in (b"head", FileRegion(file, number, 1))]
    expected = b"".join(b"head%c" % number for number in range(100))
    assert received(ends, parts, len(expected)) == expected
    assert sizes == [len(expected)]


def test_a_large_response_is_encrypted_in_pieces_of_one_size(ends: Ends, tmp_path: Path, sizes: list[int]) -> None:
    records = bytes(range(256)) * (3 * MAX_ENCRYPTED_AT_ONCE // 256)
    parts = [b"head", FileRegion(stored(tmp_path, records), 0, len(records)), b"tail" * MAX_ENCRYPTED_AT_ONCE]
    expected = b"head" + records + b"tail" * MAX_ENCRYPTED_AT_ONCE
    assert received(ends, parts, len(expected)) == expected
    assert sizes == [MAX_ENCRYPTED_AT_ONCE] * 7 + [4]  # 4 is the size of "head".


def test_a_missing_part_of_a_file_ends_the_connection(ends: Ends, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="ends at 10, 90 bytes are missing"):
        send(ends[0], [FileRegion(stored(tmp_path, bytes(10)), 0, 100)])


def test_a_client_that_never_reads_is_given_up(ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 0.3)
    monkeypatch.setattr(sending, "SLOWEST", 1 << 30)
    ends[0].settimeout(0.05)
    records = bytes(20 << 20)  # more than the buffers of the sockets can hold
    with pytest.raises(TimeoutError, match=r"the client took \d+ bytes of a response in"):
        send(ends[0], [FileRegion(stored(tmp_path, records), 0, len(records))])
