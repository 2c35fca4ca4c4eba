"""Sending an answer: bytes, regions of files, and records that are converted on the way.

The records of a Fetch are usually a region of a file.  `sendfile` copies it from the page cache to the socket, so the
bytes never enter this process.  Records for an old client (old_clients.py) come in pieces.

A client that does not read fills the socket's buffers, and the thread that sends waits.  One wait ends after STALL
seconds, by the kernel's SO_SNDTIMEO.  But a send that was partly done starts a new wait, so a client that takes a few
bytes now and then could keep its thread and its answer for ever.  So an answer as a whole has a limit, too: the thread
waits for the client for PATIENCE seconds, and for one second more for each SLOWEST bytes that the client has taken.
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
PATIENCE = 30.0  # seconds that all waits of an answer may take, before the client has taken anything
SLOWEST = 1 << 20  # bytes a second that a client has to take after that
MOST = 1 << 20  # bytes of a file for one system call: the limit is checked between two calls
IN_PIECES = (FileRegion, ConvertedRecords)  # parts that are no bytes
MSG_MORE = getattr(socket, "MSG_MORE", 0)  # Linux only


def send(client: socket.socket, parts: Sequence[Part]) -> None:
    """Send an answer.  Raises OSError; TimeoutError, which is one, where the client takes it too slowly."""
    limit = _Limit()
    pending: list[bytes | bytearray | memoryview] = []
    for part in parts:
        if isinstance(part, IN_PIECES):
            if limit.taken:
                limit.check()
            # MSG_MORE: records follow, so no packet needs to go out for a header of a few bytes.
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
    """How long an answer may take its client."""

    __slots__ = ("begun", "taken")

    def __init__(self) -> None:
        self.begun = monotonic()
        self.taken = 0  # bytes

    def check(self) -> None:
        """Raise TimeoutError if the client takes the answer too slowly."""
        waited = monotonic() - self.begun
        if waited > PATIENCE + self.taken / SLOWEST:
            raise TimeoutError(f"the client took {self.taken} bytes of an answer in {waited:.0f} s")


def _send_bytes(client: socket.socket, data: bytes | bytearray | memoryview, limit: _Limit, flags: int = 0) -> None:
    while True:
        try:
            sent = client.send(data, flags)
        except BlockingIOError:  # after STALL
            sent = 0
        limit.taken += sent
        if sent == len(data):  # at once, as a rule
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
        except BlockingIOError:  # after STALL
            sent = 0
        limit.taken += sent
        position += sent
        if position == end:
            return
        limit.check()


def _send_converted(client: socket.socket, records: ConvertedRecords, limit: _Limit) -> None:
    """Send records in pieces; the time in which they are converted is not the client's."""
    with closing(records.pieces()) as pieces:  # a client that is given up frees at once what they hold
        begun = monotonic()
        for piece in pieces:
            limit.begun += monotonic() - begun
            _send_bytes(client, piece, limit)
            limit.check()
            begun = monotonic()
