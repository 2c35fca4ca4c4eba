"""The staged server: one thread reads a request, another handles it, and a third sends the response.

The setting `threading=staged` selects this server. Its design comes from the thesis *Functional Kafka* (see
the documentation's bibliography).

The staged server exists so that students can study its code, and compare its speed with the simpler server in
server.py. A request passes through three stages, and each stage has its own threads. Queues connect the stages. The
thesis calls these queues *channels* (chapter 9.1, figure 9.2):
    processor (one per connection)  reads frames
        | request channel: bounded, for all connections
    API handler (num.io.threads)    decodes, handles, encodes
        | response channel, one per connection
    responder (one per connection)  writes responses

The thesis names two advantages of stages: a slow disk does not delay the network, and N handler threads use N
cores. Python lacks the second advantage, because only one thread runs at a time.

In the staged server, a request and its response pass through several threads. This makes the request slower,
because each of these threads must first wake up and wait for Python's interpreter lock.

The threads of the staged server follow three rules:
- *Order.* The requests of one connection are handled one after the other, even if several handlers are free. The
  request channel (the queue to the handlers) therefore contains connections instead of requests. Each connection
  is in the channel at most once, so at most one handler works for it at a time.
- *No waiting handlers.* A JoinGroup request waits until all members of its group have joined. If all handlers
  waited in this way, no handler would be free for the requests of these members. Therefore no handler gets
  a request that can wait (WAITING_APIS). The thread that reads the connection's requests (the processor) handles
  such a request, after all earlier requests of the connection are answered.
- *Limits.* The server limits how many requests wait for a handler, and how many requests of one connection are
  unanswered. At a limit, the processor stops reading. Then the socket's buffer becomes full, and TCP slows the
  client down.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from hmb.broker.deferred import final
from hmb.broker.errors import CloseConnection
from hmb.broker.network.connection import AcceptedConnection
from hmb.broker.network.request_memory import Account
from hmb.broker.network.sending import send
from hmb.defaults import LONGEST_WAIT
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.headers import API_KEY_SIZE
from hmb.protocol.primitives import Part

LOGGER = logging.getLogger(__name__)
MAX_IN_FLIGHT = 64  # limit for the requests of one connection that were read but not answered yet
WAITING_APIS = {ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}


class Handlers:
    """The threads that handle requests, and a queue of the connections that have unhandled requests.

    The thesis *Functional Kafka* calls this queue the *request channel*. Each handler thread takes a connection
    from the queue, and handles the connection's oldest request.
    """

    def __init__(self, capacity: int) -> None:
        # A SimpleQueue has no size limit, but the channel contains each connection at most once. A handler thread ends
        # when it takes None from the channel.
        self._channel: SimpleQueue[StagedConnection | None] = SimpleQueue()
        self._room = threading.BoundedSemaphore(capacity)  # free room for requests that wait for a handler
        self._threads = 0  # the number of handlers; only `resize` changes it, in one thread at a time

    def resize(self, threads: int) -> None:
        """Change the number of handler threads to `threads`."""
        for number in range(self._threads, threads):
            threading.Thread(target=self._run, name=f"api-handler-{number}", daemon=True).start()
        for _ in range(threads, self._threads):
            self._channel.put(None)
        self._threads = threads

    def admit(self, timeout: float) -> bool:
        """Reserve room for one request in the channel.

        If the channel stays full for `timeout` seconds, return False.
        """
        return self._room.acquire(timeout=timeout)

    def release(self) -> None:
        """Make room for one more request in the channel, after a handler has taken a request."""
        self._room.release()

    def queue(self, connection: StagedConnection) -> None:
        """Put a connection with unhandled requests into the channel.

        The caller makes sure that the connection is not in the channel yet.
        """
        self._channel.put(connection)

    def _run(self) -> None:
        """Serve connections until `resize` ends this thread.

        While the channel is empty, wait for the next connection.
        """
        while (connection := self._channel.get()) is not None:  # `resize(0)` wakes this wait when the broker stops.
            connection.serve_next()


class StagedConnection(AcceptedConnection):
    """A connection whose work is divided into stages.

    The connection's own thread is the processor, which reads requests. It starts and ends the responder, a second
    thread, which sends responses.
    """

    def __init__(self, handlers: Handlers, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._handlers = handlers
        # A SimpleQueue has no size limit, but this queue never has more than MAX_IN_FLIGHT responses. The responder
        # thread ends when it takes None from the queue.
        self._responses: SimpleQueue[Sequence[Part] | None] = SimpleQueue()
        self._changed = threading.Condition()  # guards the fields below; a thread that holds it takes no other lock
        self._frames: deque[tuple[memoryview, Account]] = deque()  # requests that were read, but not handled yet
        self._is_queued = False
        self._in_flight = 0  # number of requests that were read, but not answered yet
        self._broken = False

    def close(self) -> None:
        super().close()
        with self._changed:
            self._broken = True
            self._changed.notify_all()

    def serve_next(self) -> None:
        """Handle the oldest unhandled request of this connection. A handler thread calls this method."""
        with self._changed:
            frame, account = self._frames.popleft()
        self._handlers.release()
        self._begin(frame, account)
        with self._changed:
            self._is_queued = more = bool(self._frames)
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
                    if self.client.muted_until:
                        self._stay_muted()
        finally:
            self._wait_below(1)
            self._responses.put(None)
            responder.join()  # This wait ends: each send to the client has a time limit (sending.py).

    def _take(self, frame: memoryview, account: Account) -> None:
        """Pass a request to a handler thread, or handle it in this thread if its API is in WAITING_APIS.

        Requests for handler threads go through the request channel. While this channel is full, wait.
        """
        if int.from_bytes(frame[:API_KEY_SIZE]) in WAITING_APIS:
            self._wait_below(1)
            with self._changed:
                self._in_flight += 1
            self._begin(frame, account)
            return
        self._wait_below(MAX_IN_FLIGHT)
        while not self._handlers.admit(timeout=1):
            if self._stopping:
                return
        with self._changed:
            self._frames.append((frame, account))
            self._in_flight += 1
            was_queued, self._is_queued = self._is_queued, True
        if not was_queued:
            self._handlers.queue(self)

    def _begin(self, frame: memoryview, account: Account) -> None:
        parts: Sequence[Part] = ()
        if not self._broken:
            try:
                parts = final(self._dispatcher.begin(frame, account))
            except CloseConnection as error:
                LOGGER.warning("closing %s: %s", self._peer, error)
                with self._changed:
                    self._broken = True
                    self._changed.notify_all()
                self.stop()
        account.close()
        self._responses.put(parts)

    def _respond(self) -> None:
        """Send responses from the queue, until the next item is None.

        `_serve` puts None into the queue when the connection ends. This thread always ends, even if the client does not
        read its responses, because each call of `send` has a time limit.
        """
        while (parts := self._responses.get()) is not None:
            if parts:
                try:
                    send(self._socket, parts)
                except OSError as error:
                    LOGGER.info("lost the connection to %s: %s", self._peer, error)
                    self.close()
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def _wait_below(self, requests: int) -> None:
        """Wait until this connection has fewer than `requests` unanswered requests, or is broken.

        This wait always ends. Each request gets a response, because every wait of a handler has a time limit. If the
        connection is closed, `close` wakes this thread.
        """
        with self._changed:
            while self._in_flight >= requests and not self._broken:
                self._changed.wait(LONGEST_WAIT)
