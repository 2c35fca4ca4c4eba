"""The thread layout of the thesis, to study and to measure: `threading=staged`.

A request passes through stages. Each stage has its own threads, and queues connect the stages (thesis, chapter 9.1,
figure 9.2)::

    processor (one per connection)  reads frames
        | request channel: bounded, for all connections
    API handler (num.io.threads)    decodes, handles, encodes
        | response channel, one per connection
    responder (one per connection)  writes answers

The layout promises that a slow disk does not delay the network, and that N handlers use N cores. In Python only one
thread runs at a time, so N handlers use one core. The cost of the layout remains: a request moves between threads
twice. Each time the next thread has to wake up and to wait for the interpreter lock.

Three rules keep the layout correct:

- *Order.* The requests of one connection are handled one after the other, however many handlers exist. The request
  channel contains connections, not requests, and each connection at most once.
- *No waiting handlers.* A handler must not wait for another request, because that request may never find a handler. So
  the processor itself handles the APIs that wait (a long poll, a rebalance), after all earlier requests.
- *Bounds.* Each channel is bounded. A processor that may not continue stops reading. The socket's buffer fills, and TCP
  slows the client down.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from hmb.broker.errors import CloseConnection
from hmb.broker.network.connection import AcceptedConnection
from hmb.broker.network.request_memory import Account
from hmb.broker.network.requests import API_KEY_SIZE
from hmb.broker.network.sending import send
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.primitives import Part

LOGGER = logging.getLogger(__name__)
MOST_IN_FLIGHT = 64  # requests of one connection that were read but not answered
WAITING_APIS = {ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}


class Handlers:
    """The request channel, and the handlers that serve it."""

    def __init__(self, capacity: int) -> None:
        self._turns: SimpleQueue[StagedConnection | None] = SimpleQueue()  # None ends one handler
        self._room = threading.BoundedSemaphore(capacity)  # requests that wait for a handler
        self._threads = 0  # only `resize` changes it; one thread at a time calls `resize`

    def resize(self, threads: int) -> None:
        """Change the number of handlers."""
        for number in range(self._threads, threads):
            threading.Thread(target=self._run, name=f"api-handler-{number}", daemon=True).start()
        for _ in range(threads, self._threads):
            self._turns.put(None)
        self._threads = threads

    def admit(self, timeout: float) -> bool:
        """Reserve room for a request in the channel; return False if the channel is full for `timeout` seconds."""
        return self._room.acquire(timeout=timeout)

    def release(self) -> None:
        """Free the room of a request that a handler has taken from the channel."""
        self._room.release()

    def queue(self, connection: StagedConnection) -> None:
        """Put a connection into the channel. It has requests, and is not in the channel yet."""
        self._turns.put(connection)

    def _run(self) -> None:
        while (connection := self._turns.get()) is not None:
            connection.serve_next()


class StagedConnection(AcceptedConnection):
    """A connection in stages. Its own thread is the processor; it starts and ends the responder."""

    def __init__(self, handlers: Handlers, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._handlers = handlers
        self._answers: SimpleQueue[Sequence[Part] | None] = SimpleQueue()  # None ends the responder
        self._changed = threading.Condition()  # guards the fields below; no other lock is taken while it is held
        self._frames: deque[tuple[memoryview, Account]] = deque()  # requests that were read but not begun
        self._has_turn = False
        self._in_flight = 0  # number of requests that were read but not answered
        self._broken = False

    def close(self) -> None:
        super().close()
        with self._changed:
            self._broken = True
            self._changed.notify_all()

    def serve_next(self) -> None:
        """Handle one request in the thread of a handler."""
        with self._changed:
            frame, memory = self._frames.popleft()
        self._handlers.release()
        self._begin(frame, memory)
        with self._changed:
            self._has_turn = more = bool(self._frames)
        if more:
            self._handlers.queue(self)

    def _serve(self) -> None:
        responder = threading.Thread(target=self._respond, name=f"responder-{self._peer}", daemon=True)
        responder.start()
        try:
            with self._requests as requests:
                while not self._stopping and (frame := requests.next()) is not None:
                    if self._stopping:
                        break
                    self._take(frame, requests.account)
        finally:
            self._wait_below(1)
            self._answers.put(None)
            responder.join()

    def _take(self, frame: memoryview, memory: Account) -> None:
        """Wait until there is room for a request, and put it into the channel."""
        if int.from_bytes(frame[:API_KEY_SIZE]) in WAITING_APIS:
            self._wait_below(1)
            with self._changed:
                self._in_flight += 1
            self._begin(frame, memory)
            return
        self._wait_below(MOST_IN_FLIGHT)
        while not self._handlers.admit(timeout=1):
            if self._stopping:
                return
        with self._changed:
            self._frames.append((frame, memory))
            self._in_flight += 1
            has_turn, self._has_turn = self._has_turn, True
        if not has_turn:
            self._handlers.queue(self)

    def _begin(self, frame: memoryview, memory: Account) -> None:
        parts: Sequence[Part] = ()
        if not self._broken:
            try:
                parts = self._dispatcher.begin(frame, memory).parts()
            except CloseConnection as error:
                LOGGER.warning("closing %s: %s", self._peer, error)
                with self._changed:
                    self._broken = True
                    self._changed.notify_all()
                self.stop()
        memory.close()
        self._answers.put(parts)

    def _respond(self) -> None:
        while (parts := self._answers.get()) is not None:
            if parts:
                try:
                    send(self._socket, parts)
                except OSError as error:
                    LOGGER.info("lost %s: %s", self._peer, error)
                    self.close()
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def _wait_below(self, requests: int) -> None:
        """Wait until fewer requests are in progress, or the connection is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._in_flight < requests or self._broken)
