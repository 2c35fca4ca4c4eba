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
import time
from collections.abc import Sequence
from contextlib import closing

from hmb.broker.old_clients import ConvertedRecords
from hmb.protocol.primitives import Part
from hmb.storage.files import FileRegion

STALL = 5.0  # seconds that one system call may wait
PATIENCE = 30.0  # seconds that all waits of an answer may take, before the client has taken anything
SLOWEST = 256 * 1024  # bytes a second that a client has to take after that
MOST = 1 << 20  # bytes of a file for one system call: the limit is checked between two calls
MSG_MORE = getattr(socket, "MSG_MORE", 0)  # Linux only


def send(client: socket.socket, parts: Sequence[Part]) -> None:
    """Send an answer.  Raises OSError; TimeoutError, which is one, where the client takes it too slowly."""
    sending = _Sending(client)
    pending: list[bytes | bytearray | memoryview] = []
    for part in parts:
        if isinstance(part, FileRegion | ConvertedRecords):
            # MSG_MORE: records follow, so no packet needs to go out for a header of a few bytes.
            sending.bytes(b"".join(pending), MSG_MORE)
            pending.clear()
            sending.records(part)
        else:
            assert isinstance(part, (bytes, bytearray, memoryview))
            pending.append(part)
    if pending:
        sending.bytes(b"".join(pending) if len(pending) > 1 else pending[0])


class _Sending:
    """One answer on its way to one client."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._taken = 0  # bytes
        self._waited = 0.0  # seconds in system calls: the time in which records are converted is not the client's

    def bytes(self, data: bytes | bytearray | memoryview, flags: int = 0) -> None:
        rest = memoryview(data)
        while rest:
            begun = self._begin()
            try:
                sent = self._client.send(rest, flags)
            except BlockingIOError:  # after STALL
                sent = 0
            self._end(begun, sent)
            rest = rest[sent:]

    def records(self, records: FileRegion | ConvertedRecords) -> None:
        if isinstance(records, FileRegion):
            self._region(records)
            return
        with closing(records.pieces()) as pieces:  # a client that is given up frees at once what they hold
            for piece in pieces:
                self.bytes(piece)

    def _region(self, region: FileRegion) -> None:
        position, end = region.position, region.position + region.size
        while position < end:
            begun = self._begin()
            try:
                sent = os.sendfile(self._client.fileno(), region.file.fileno(), position, min(end - position, MOST))
                if not sent:
                    raise OSError(f"{region.file.name} ends at {position}, {end - position} bytes before it should")
            except BlockingIOError:  # after STALL
                sent = 0
            self._end(begun, sent)
            position += sent

    def _begin(self) -> float:
        """Return the time.  Raises TimeoutError where the client takes the answer too slowly."""
        if self._waited > PATIENCE + self._taken / SLOWEST:
            raise TimeoutError(f"the client took {self._taken} bytes of an answer in {self._waited:.0f} s")
        return time.monotonic()

    def _end(self, begun: float, sent: int) -> None:
        self._waited += time.monotonic() - begun
        self._taken += sent
