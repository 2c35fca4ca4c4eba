"""Sending an answer: bytes, regions of files, and records that are converted during sending.

The records in the response to a Fetch are usually a region of a file. `sendfile` copies the region from the page cache
to the socket, so its bytes never enter this process. Records for an old client (old_clients.py) are sent in pieces.

A client that does not read fills the socket's buffers, and then the sending thread waits. One wait ends after STALL
seconds, because the kernel limits it (SO_SNDTIMEO). But each partial send begins a new wait. A client that reads a few
bytes now and then could keep a thread and an answer forever. So an answer as a whole has a limit, too: PATIENCE
seconds, and one second more for each SLOWEST bytes that the client has read.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import closing
from time import monotonic

from hmb.broker.old_clients import ConvertedRecords
from hmb.protocol.primitives import Part
from hmb.storage.files.virtual import FileRegion

STALL = 2.0  # seconds that one system call may wait
PATIENCE = 30.0  # seconds that a client may make one answer wait before it reads anything
SLOWEST = 1 << 20  # bytes that a client must read in each second after PATIENCE seconds
MOST = 1 << 20  # bytes of a file in one system call; the limit is checked between two calls
IN_PIECES = (FileRegion, ConvertedRecords)  # the parts of an answer that are sent in pieces
MSG_MORE = getattr(socket, "MSG_MORE", 0)  # Only Linux has this flag.


def send(client: socket.socket, parts: Sequence[Part]) -> None:
    """Send an answer. Raises OSError, and TimeoutError (an OSError) if the client reads too slowly."""
    limit = _Limit()
    pending: list[bytes | bytearray | memoryview] = []
    for part in parts:
        if isinstance(part, IN_PIECES):
            if limit.taken:
                limit.check()
            # MSG_MORE announces that more bytes follow: the records. So the kernel sends no packet that contains only
            # the header.
            _send_bytes(client, b"".join(pending), limit, MSG_MORE)
            pending.clear()
            if isinstance(part, FileRegion):
                _send_region(client, part, limit)
            else:
                _send_converted(client, part, limit)
        else:
            assert isinstance(part, (bytes, bytearray, memoryview))
            pending.append(part)
    if pending:
        _send_bytes(client, b"".join(pending) if len(pending) > 1 else pending[0], limit)


class _Limit:
    """The time limit for sending one answer."""

    __slots__ = ("begun", "taken")

    def __init__(self) -> None:
        self.begun = monotonic()
        self.taken = 0  # bytes that the client has read

    def check(self) -> None:
        """Raise TimeoutError if the client has read too slowly."""
        waited = monotonic() - self.begun
        if waited > PATIENCE + self.taken / SLOWEST:
            raise TimeoutError(f"the client took {self.taken} bytes of an answer in {waited:.0f} s")


def _send_bytes(client: socket.socket, data: bytes | bytearray | memoryview, limit: _Limit, flags: int = 0) -> None:
    while True:
        try:
            sent = client.send(data, flags)
        except BlockingIOError:  # The system call has waited for STALL seconds.
            sent = 0
        limit.taken += sent
        if sent == len(data):  # In most cases the first call sends all bytes.
            return
        limit.check()
        data = memoryview(data)[sent:]


def _send_region(client: socket.socket, region: FileRegion, limit: _Limit) -> None:
    file = region.file.open()
    position, end = region.position, region.position + region.size
    while True:
        try:
            sent = os.sendfile(client.fileno(), file.fileno(), position, min(end - position, MOST))
            if not sent:
                raise OSError(f"{region.file.path} ends at {position}, {end - position} bytes before it should")
        except BlockingIOError:  # The system call has waited for STALL seconds.
            sent = 0
        limit.taken += sent
        position += sent
        if position == end:
            return
        limit.check()


def _send_converted(client: socket.socket, records: ConvertedRecords, limit: _Limit) -> None:
    """Send records in pieces. The time of the conversion does not count against the client."""
    with closing(records.pieces()) as pieces:  # `closing` frees the memory at once, also after an error.
        begun = monotonic()
        for piece in pieces:
            limit.begun += monotonic() - begun
            _send_bytes(client, piece, limit)
            limit.check()
            begun = monotonic()
