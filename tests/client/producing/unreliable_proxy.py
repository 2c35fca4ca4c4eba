"""A proxy that loses, cuts, delays and repeats Produce requests."""

from __future__ import annotations

import random
import socket
import struct
import threading
from contextlib import suppress
from enum import Enum, auto
from typing import Self

PRODUCE = 0


class Fate(Enum):
    """The possible faults of a Produce request in the proxy."""

    ARRIVES = auto()
    IS_LOST = auto()  # The broker does not get the request, and the connection breaks.
    IS_CUT = auto()  # The broker gets only the first part of the request.
    ANSWER_IS_LOST = auto()
    ANSWER_IS_CUT = auto()
    COMES_TWICE = auto()
    COMES_LATE = auto()  # The request arrives after the connection has broken, and after later requests.


class ChaosProxy:
    """An unreliable proxy for a broker on this machine.

    The given percentage of the Produce requests is forwarded without a fault.
    """

    def __init__(self, arriving: int, seed: int = 0) -> None:
        bad = [fate for fate in Fate if fate is not Fate.ARRIVES]
        self._fates = [Fate.ARRIVES] * arriving + [bad[number % len(bad)] for number in range(100 - arriving)]
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.target = 0  # the broker's port
        self.passes_all = False
        self.seen: set[Fate] = set()
        self._late: list[bytes] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client, socket.create_connection(("127.0.0.1", self.target)) as broker:
            while True:
                request = _frame(client)
                is_at_risk = struct.unpack_from(">h", request, 4)[0] == PRODUCE and not self.passes_all
                self._forward(request, self._random.choice(self._fates) if is_at_risk else Fate.ARRIVES, client, broker)

    def _forward(self, request: bytes, fate: Fate, client: socket.socket, broker: socket.socket) -> None:
        """Forward one request, with the fault in `fate`. Raises EOFError to close the connection."""
        self.seen.add(fate)
        if fate is Fate.COMES_LATE:
            self._late.append(request)
        if fate in (Fate.IS_LOST, Fate.COMES_LATE):
            raise EOFError
        if fate is Fate.IS_CUT:
            broker.sendall(request[: len(request) // 2])
            raise EOFError
        broker.sendall(request)
        answer = _frame(broker)
        if fate is Fate.COMES_TWICE:
            broker.sendall(request)
            _frame(broker)
        if fate is Fate.ANSWER_IS_LOST:
            raise EOFError
        if fate is Fate.ANSWER_IS_CUT:
            client.sendall(answer[: len(answer) // 2])
            raise EOFError
        while self._late and self._random.random() < 0.5:
            broker.sendall(self._late.pop())
            _frame(broker)
        client.sendall(answer)


def _frame(source: socket.socket) -> bytes:
    size = _exactly(source, 4)
    return size + _exactly(source, struct.unpack(">i", size)[0])


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
