"""Sends a response to a client. A response consists of bytes, regions of files, and records that must be converted.

The records in a Fetch response are usually a region of a file. The system call `sendfile` copies this region from the
kernel's page cache to the socket. The broker's process never reads these bytes.

In two cases, `sendfile` is not possible, so the broker's process reads the records of a Fetch response:
- The connection uses TLS. The kernel cannot encrypt the records, so the broker encrypts them (`EncryptedResponse`).
- An old client needs the records in an older format. The broker converts the records and sends them in pieces
  (old_clients.py).

If a client does not read, the socket's buffers become full, and the sending thread waits. The kernel ends each wait
after STALL seconds (SO_SNDTIMEO). The thread then checks how long the whole response has taken. If the time exceeds
a limit, sending fails. Otherwise, the thread tries again.

The time limit for a whole response is 30 seconds (PATIENCE), plus one second for each MiB that the broker has
sent (SLOWEST). For example, after 10 MiB the limit is 30 + 10 = 40 seconds.

A client could read one byte each second. Each wait of the broker would be short, but 1 MiB would take 12 days.
The time limit therefore applies to the whole response.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import closing
from time import monotonic

from hmb.broker.old_clients import ConvertedRecords
from hmb.protocol.primitives import BYTES_LIKE, Part, part_size
from hmb.storage.files.virtual import FileRegion

STALL = 2.0  # longest wait of one system call, in seconds
PATIENCE = 30.0  # seconds until sending fails if the client reads nothing
SLOWEST = 1 << 20  # bytes that a client must read per second after the first PATIENCE seconds
MAX_SENT_AT_ONCE = 1 << 20  # bytes that one system call sends from a file; the time limit is checked after each call
MAX_ENCRYPTED_AT_ONCE = 1 << 16  # The broker encrypts at most this number of bytes at once.
IN_PIECES = (FileRegion, ConvertedRecords)  # `send` sends objects of these types in several steps, not with one call.
MSG_MORE = getattr(socket, "MSG_MORE", 0)  # Only Linux has this flag.


def send(sock: socket.socket, parts: Sequence[Part]) -> None:
    """Send a response to a client.

    Raises OSError if the connection is broken, and TimeoutError (a kind of OSError) if the client reads too slowly.
    """
    limit = _Limit()
    if type(sock) is not socket.socket:  # The socket of a connection with TLS has a class of its own (TlsSocket).
        EncryptedResponse(sock, limit).send(parts)
        return
    pending: list[bytes | bytearray | memoryview] = []
    for part in parts:
        if isinstance(part, IN_PIECES):
            if limit.taken:
                limit.check()
            # Without MSG_MORE, the kernel would send a small packet with only the header. With MSG_MORE, the kernel
            # waits for the records that follow the header.
            _send_bytes(sock, b"".join(pending), limit, MSG_MORE)
            pending.clear()
            if isinstance(part, FileRegion):
                _send_region(sock, part, limit)
            else:
                _send_converted(sock, part, limit)
        else:
            assert isinstance(part, BYTES_LIKE)
            pending.append(part)
    if pending:
        _send_bytes(sock, b"".join(pending) if len(pending) > 1 else pending[0], limit)


class _Limit:
    """The time limit for sending one response. The limit becomes longer while the client reads bytes."""

    __slots__ = ("begun", "taken")

    def __init__(self) -> None:
        self.begun = monotonic()
        self.taken = 0  # bytes that the client has read

    def check(self) -> None:
        """Raise TimeoutError if sending the response has taken too long."""
        waited = monotonic() - self.begun
        if waited > PATIENCE + self.taken / SLOWEST:
            raise TimeoutError(f"the client took {self.taken} bytes of a response in {waited:.0f} s")


def _send_bytes(sock: socket.socket, data: bytes | bytearray | memoryview, limit: _Limit, flags: int = 0) -> None:
    while True:
        try:
            sent = sock.send(data, flags)
        except BlockingIOError:  # The system call has waited for STALL seconds.
            sent = 0
        limit.taken += sent
        if sent == len(data):  # In most cases the first call sends all bytes.
            return
        limit.check()
        data = memoryview(data)[sent:]


def _send_region(sock: socket.socket, region: FileRegion, limit: _Limit) -> None:
    file = region.file.open()
    position, end = region.position, region.position + region.size
    while True:
        try:
            sent = os.sendfile(sock.fileno(), file.fileno(), position, min(end - position, MAX_SENT_AT_ONCE))
            if not sent:
                raise _too_short(region, position)
        except BlockingIOError:  # The system call has waited for STALL seconds.
            sent = 0
        limit.taken += sent
        position += sent
        if position == end:
            return
        limit.check()


def _too_short(region: FileRegion, position: int) -> OSError:
    missing = region.position + region.size - position
    return OSError(f"{region.file.path} ends at {position}, {missing} bytes are missing")


def _send_converted(sock: socket.socket, records: ConvertedRecords, limit: _Limit) -> None:
    """Convert and send records in pieces.

    The time for the conversion does not count towards the client's time limit.
    """
    with closing(records.pieces()) as pieces:  # `closing` frees the reserved memory at once, even after an error.
        begun = monotonic()
        for piece in pieces:
            limit.begun += monotonic() - begun
            _send_bytes(sock, piece, limit)
            limit.check()
            begun = monotonic()


class EncryptedResponse:
    """Sends one response over TLS. It copies the parts of the response into a buffer, and sends full buffers.

    A Fetch response contains many small parts: fields, and regions of files. Without the buffer, each part would
    need a TLS record and a system call of its own. For a response with 100 regions of 1,000 bytes, the broker needs
    0.4 ms of processor time with the buffer, and 1.3 ms without it.
    """

    def __init__(self, sock: socket.socket, limit: _Limit) -> None:
        self._socket, self._limit = sock, limit
        self._buffer = memoryview(b"")
        self._filled = 0  # bytes

    def send(self, parts: Sequence[Part]) -> None:
        size = sum(map(part_size, parts))
        self._buffer = memoryview(bytearray(min(size, MAX_ENCRYPTED_AT_ONCE)))
        for part in parts:
            if isinstance(part, FileRegion):
                self._read(part)
            elif isinstance(part, ConvertedRecords):
                self._flush()
                _send_converted(self._socket, part, self._limit)
            else:
                assert isinstance(part, BYTES_LIKE)
                self._copy(memoryview(part))
        self._flush()

    def _read(self, region: FileRegion) -> None:
        file = region.file.open()
        position, end = region.position, region.position + region.size
        while position < end:
            size = os.preadv(file.fileno(), [self._buffer[self._filled :][: end - position]], position)
            if not size:
                raise _too_short(region, position)
            position += size
            self._advance(size)

    def _copy(self, data: memoryview) -> None:
        while data:
            space = len(self._buffer) - self._filled
            piece, data = data[:space], data[space:]
            self._buffer[self._filled : self._filled + len(piece)] = piece
            self._advance(len(piece))

    def _advance(self, size: int) -> None:
        self._filled += size
        if self._filled == len(self._buffer):
            self._flush()

    def _flush(self) -> None:
        if self._filled:
            if self._limit.taken:
                self._limit.check()
            _send_bytes(self._socket, self._buffer[: self._filled], self._limit)
            self._filled = 0
