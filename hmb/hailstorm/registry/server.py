"""The registry over TCP: each connection is a session.

Client and server exchange lists, which `hmb.hailstorm.codec` encodes. The length of the encoded list (uint32,
big-endian) comes first. The server answers requests in order:
    client -> server                              server -> client
    ["join", name]                                ["ok", session timeout in seconds]
    ["create", path, value]                       ["ok", False if the node existed, else True]
    ["write", path, value]                        ["ok", None] or ["expired", why]
    ["watch", prefix]                             ["ok", None]
    ["beat"]                                      (no answer)
                                                  ["changed", path, value or None], at any time

If the connection of a client breaks, the server ends the client's session immediately. If the client's process
hangs or its machine fails, the connection stays open, but no request arrives. The server waits for the session
timeout, and then closes the connection and ends the session. When a session ends, the registry removes the
nodes that the session has created. The server reports this to every client that watches one of these nodes.

The registry server is meant for the processes of one user. By default, the server listens only on the loopback
interface, so only processes of the same machine can connect. The server does not check the identity of its clients.
"""

from __future__ import annotations

import logging
import queue
import socket
import threading
from contextlib import suppress
from typing import Any

from hmb.defaults import DEFAULT_HOST, REGISTRY_SESSION_TIMEOUT
from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.registry.local import LocalRegistry, LocalSession
from hmb.hailstorm.registry.sessions import SessionExpiredError
from hmb.hailstorm.wire import FrameSocket

LOGGER = logging.getLogger(__name__)
MAX_OUTGOING = 10_000  # the largest number of answers and changes that wait in the queue of one client


class RegistryServer:
    """Serves a registry at a port. One thread accepts connections, and two threads serve each connection."""

    def __init__(
        self,
        registry: LocalRegistry,
        host: str = DEFAULT_HOST,
        port: int = 0,
        session_timeout: float = REGISTRY_SESSION_TIMEOUT,
    ) -> None:
        self.registry, self.session_timeout = registry, session_timeout
        self._listener = socket.create_server((host, port))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._connections: set[RegistryConnection] = set()
        self._lock = threading.Lock()  # guards the set of connections
        self._is_closed = False
        threading.Thread(target=self._accept, name="hailstorm-registry", daemon=True).start()

    def close(self) -> None:
        """End all remote sessions, and stop listening."""
        self._is_closed = True
        self._listener.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if not self._is_closed:
                    LOGGER.exception("the registry accepts no more connections")
                return
            connection = RegistryConnection(self, client)
            with self._lock:
                self._connections.add(connection)
            connection.start()

    def forget(self, connection: RegistryConnection) -> None:
        with self._lock:
            self._connections.discard(connection)


class RegistryConnection(threading.Thread):
    """Serves the connection of one client with two threads.

    This thread reads the client's requests. A second thread sends what other threads have put into a queue. The
    queue contains the answers to the requests, and a notice of each change to a node that the client watches.
    """

    def __init__(self, server: RegistryServer, client: socket.socket) -> None:
        super().__init__(name="hailstorm-registry-connection", daemon=True)
        self._server = server
        self._socket = FrameSocket(client)
        self._session: LocalSession | None = None
        # While this queue is empty, the method `_send_all` waits without a time limit. `close` ends the wait with the
        # value None.
        self._outgoing: queue.Queue[Any] = queue.Queue(MAX_OUTGOING)

    def run(self) -> None:
        threading.Thread(target=self._send_all, name="hailstorm-registry-sender", daemon=True).start()
        self._socket.set_timeout(self._server.session_timeout)
        try:
            while True:
                self._serve(self._socket.receive())
        except TimeoutError:
            LOGGER.warning("the session of %s has expired because no heartbeat has arrived", self._owner)
        except (OSError, HailstormError, ValueError, TypeError) as error:
            LOGGER.debug("the session of %s has expired: %s", self._owner, error)
        finally:
            self.close()

    def close(self) -> None:
        """End the session and the connection."""
        if self._session is not None:
            self._session.close()
        # The value None ends the sending thread. If the queue is full, the thread needs no None: its next attempt to
        # send fails, because the socket is closed.
        with suppress(queue.Full):
            self._outgoing.put_nowait(None)
        self._socket.close()
        self._server.forget(self)

    @property
    def _owner(self) -> str | None:
        return None if self._session is None else self._session.name

    def _send(self, value: Any) -> None:
        """Add an answer, or a notice of a changed node, to the queue. If the queue is full, end the session.

        A full queue shows that the client does not read its answers.
        """
        try:
            self._outgoing.put_nowait(value)
        except queue.Full:
            LOGGER.warning("the session of %s has expired because the client does not read the answers", self._owner)
            self._socket.close()  # The reading thread gets an error from the closed socket, and ends the session.

    def _serve(self, request: Any) -> None:
        what, *arguments = request
        if what == "beat":
            return
        if what == "join":
            self._session = self._server.registry.join(*arguments)
            self._send(["ok", self._server.session_timeout])
            return
        if self._session is None:
            raise ValueError("the first request of a connection must be join")
        try:
            self._send(["ok", self._perform(self._session, what, arguments)])
        except SessionExpiredError as error:
            self._send(["expired", str(error)])

    def _perform(self, session: LocalSession, what: str, arguments: list[Any]) -> bool | None:
        match what:
            case "create":
                return session.create(*arguments)
            case "write":
                session.write(*arguments)
            case "watch":
                (prefix,) = arguments
                session.watch(prefix, lambda path, value: self._send(["changed", path, value]))
            case _:
                raise ValueError(f"{what!r} is not a request")
        return None

    def _send_all(self) -> None:
        try:
            while (value := self._outgoing.get()) is not None:
                self._socket.send(value)
        except OSError:
            self._socket.close()  # The reading thread gets an error from the closed socket, and ends the session.
