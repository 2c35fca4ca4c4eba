"""The server: it accepts connections, and starts one thread for each connection.

A Kafka broker handles the requests of one connection one after the other. Therefore one thread for each connection is
enough: it reads a request, handles it, sends the response, and reads the next request. If a Fetch request waits for new
records, only this thread waits.

In Python, it takes longer to pass a request to another thread than to handle the request. The thread of a
connection therefore handles each request itself. The thesis on which HMB is based describes another design, in
which several threads share the work on a request. The module `staged.py` contains this design, so that the two
can be compared.

Source: thesis, chapter 9.2 (network layer).
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from hmb.broker.config.limits import LimitsConfig
from hmb.broker.context import BrokerContext, ConnectedClient
from hmb.broker.dispatch import Dispatcher, Handler
from hmb.broker.handlers import HANDLERS
from hmb.broker.network import request_log
from hmb.broker.network.connection import AcceptedConnection, has_disconnected
from hmb.broker.network.connection_limits import ConnectionLimits
from hmb.broker.network.listeners import Listener, bind
from hmb.broker.network.request_memory import RequestMemory
from hmb.broker.network.staged import Handlers, StagedConnection
from hmb.broker.security.settings import PLAIN, ListenerSecurity
from hmb.protocol.api_keys import ApiKey
from hmb.security.ip_addresses import normal_address

LOGGER = logging.getLogger(__name__)
MAX_THROTTLED = 100  # the server keeps at most this number of refused connections open
ACCEPT_PAUSE = 0.1  # seconds that the server waits after it failed to accept or serve a connection
DEADLINES_CHECKED = 1.0  # seconds between two checks of the deadlines of all connections


class Server:
    """Accepts connections on all listeners, and keeps a table of the open connections."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        memory: RequestMemory,
        most_connections: int,
        handlers: Mapping[ApiKey, Handler] = HANDLERS,
        security: Mapping[str, ListenerSecurity] = MappingProxyType({}),
        limits: ConnectionLimits | None = None,
    ) -> None:
        """Bind the listeners. Serve at most `most_connections` connections at the same time.

        `security` maps the name of a listener to its settings for TLS and logins. A listener without an entry uses
        neither TLS nor logins.

        Clients can connect as soon as the listeners are bound, but the server answers no request before `start` is
        called. Raises BindError.
        """
        self._memory = memory
        self._api_handlers = handlers
        self._security = security
        self._most_connections = most_connections
        self._limits = limits or ConnectionLimits()
        self._throttled: deque[tuple[float, socket.socket]] = deque()  # refused connections, and when to close them
        self._connections: dict[AcceptedConnection, str] = {}  # the open connections, oldest first, and their listeners
        self._lock = threading.Lock()  # guards `_connections`, `_throttled` and the counters of `_limits`
        self._stopping = threading.Event()
        self._bound: list[tuple[socket.socket, Listener]] = []
        try:
            for listener in listeners:
                self._bound.append(bind(listener))
        except BaseException:
            self._close_listeners()
            raise
        self._acceptors: list[threading.Thread] = []
        self._handlers: Handlers | None = None  # None unless `threading=staged`

    @property
    def listeners(self) -> list[Listener]:
        return [listener for _, listener in self._bound]

    def clients(self) -> list[tuple[str, ConnectedClient]]:
        """Return, for each open connection, the address (`host:port`) of the client and its `ConnectedClient`."""
        with self._lock:
            return [(str(connection), connection.client) for connection in self._connections if connection.has_client]

    def start(self, broker: BrokerContext) -> None:
        """Begin to serve clients. For each listener, one new thread accepts connections."""
        if broker.config.threading == "staged":
            self._handlers = Handlers(broker.config.queued_max_requests)
            broker.configs.listen(lambda config: self._resize(config.io_threads))
        for bound, listener in self._bound:
            acceptor = threading.Thread(
                target=self._accept, args=(bound, listener, broker), name=f"accept-{listener}", daemon=True
            )
            self._acceptors.append(acceptor)
            acceptor.start()
        threading.Thread(target=self._watch_deadlines, name="deadlines", daemon=True).start()

    def stop(self, deadline: float) -> None:
        """Accept no more connections, and let each connection finish its current request.

        At the deadline, close all connections that are still open.
        """
        self._stopping.set()
        self._memory.stop()
        self._close_listeners()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.stop()
        for thread in [*self._acceptors, *(connection.thread for connection in connections)]:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        for connection in connections:
            connection.close()
        self._close_throttled(math.inf)
        self._resize(0)

    def _resize(self, threads: int) -> None:
        if self._handlers is not None:
            self._handlers.resize(threads)

    def _accept(self, bound: socket.socket, listener: Listener, broker: BrokerContext) -> None:
        while not self._stopping.is_set():
            try:
                sock, address = bound.accept()
            except OSError as error:
                if not self._stopping.is_set():  # `accept` has failed, for example because no descriptor is free.
                    LOGGER.error("cannot accept on %s: %s", listener, error)
                    time.sleep(ACCEPT_PAUSE)
                continue
            peer = f"{normal_address(address[0])}:{address[1]}"
            while wait := self._limits.delay_ms(listener.name, broker.config.limits):
                if self._stopping.wait(wait / 1000):
                    break
            try:
                self._admit(sock, peer, listener, broker)
            except (OSError, RuntimeError, MemoryError) as error:  # The client has left, or no thread could start.
                LOGGER.error("cannot serve %s: %s", peer, error)
                sock.close()
                time.sleep(ACCEPT_PAUSE)

    def _admit(self, sock: socket.socket, peer: str, listener: Listener, broker: BrokerContext) -> None:
        security = self._security.get(listener.name, PLAIN)
        host = peer.rpartition(":")[0]
        if wait := broker.quotas.record_connection(host):
            self._throttle(sock, peer, wait)
            return
        if security.tls is not None:
            sock = security.tls.encrypted(sock)
        # This call can wait for a DNS server. The thread does not hold `_lock` yet, so no other thread has to wait.
        address_limit = self._limits.address_limit(host, broker.config.limits)
        with self._lock:
            if (reason := self._reason_to_refuse(host, listener, broker.config.limits, address_limit)) is not None:
                LOGGER.warning("refused a connection from %s: %s", peer, reason)
                sock.close()
                return
            make = AcceptedConnection if self._handlers is None else partial(StagedConnection, self._handlers)
            is_logged = request_log.LOGGER.isEnabledFor(logging.DEBUG)
            dispatcher = partial(request_log.LoggedDispatcher, peer) if is_logged else Dispatcher
            connected = ConnectedClient(host, int(peer.rpartition(":")[2]), partial(has_disconnected, sock))
            connection = make(
                sock,
                peer,
                connected,
                dispatcher(
                    broker,
                    listener,
                    self._api_handlers,
                    connected,
                ),
                idle=broker.config.limits.max_idle / 1000,
                max_request=broker.config.request_max_bytes,
                memory=self._memory,
                on_close=self._forget,
                security=security,
            )
            if security.protocol.has_sasl:
                connection.require_login(security, broker)
            connection.thread.start()  # If `start` fails, the server must not add the connection to its table.
            self._connections[connection] = listener.name
            self._limits.add(host, listener.name)

    def _throttle(self, sock: socket.socket, peer: str, wait: int) -> None:
        """Keep a refused connection open for `wait` ms, and then close it.

        If the server closed the connection immediately, the client would immediately connect again. The server keeps at
        most MAX_THROTTLED refused connections open, and closes the oldest one if there are more.
        """
        LOGGER.warning("refused a connection from %s: this address exceeds the quota connection_creation_rate", peer)
        with self._lock:
            self._throttled.append((time.monotonic() + wait / 1000, sock))
            if len(self._throttled) > MAX_THROTTLED:
                self._throttled.popleft()[1].close()

    def _close_throttled(self, now: float) -> None:
        """Close the refused connections whose throttle time is over at the time `now`."""
        with self._lock:
            while self._throttled and self._throttled[0][0] <= now:
                self._throttled.popleft()[1].close()

    def _make_room(self, most: int) -> bool:
        """Return whether there is room for one more connection. The caller holds the lock.

        If fewer than `most` connections are open, return True. Otherwise, close the oldest silent connection and return
        True. The client of a silent connection has not sent a complete request yet, or must still log in. If no
        connection is silent, return False.
        """
        if len(self._connections) < most:
            return True
        silent = next((connection for connection in self._connections if connection.is_silent), None)
        if silent is None:
            return False
        LOGGER.info("closing %s to make room for a new connection, because it has sent no request", silent)
        self._remove(silent)
        silent.close()
        return True

    def _watch_deadlines(self) -> None:
        """Check all connections each second. If a request has not arrived before its deadline, close the connection."""
        while not self._stopping.wait(DEADLINES_CHECKED):
            now = time.monotonic()
            with self._lock:
                late = [each for each in self._connections if each.deadline is not None and each.deadline < now]
            for connection in late:
                LOGGER.info("closing %s: its request did not arrive in time", connection)
                connection.close()
            self._close_throttled(now)

    def _reason_to_refuse(self, host: str, listener: Listener, config: LimitsConfig, address_limit: int) -> str | None:
        """Return the reason to refuse a new connection, or None to accept the connection. The caller holds the lock.

        `address_limit` is the number of connections that `host` may have.
        """
        if self._stopping.is_set():
            return "the broker is stopping"
        if (reason := self._limits.reason_to_refuse(host, listener.name, address_limit)) is not None:
            return reason
        if self._make_room(min(config.max_connections, self._most_connections)):
            return None
        if len(self._connections) >= config.max_connections:
            return "max.connections reached"
        return f"the limit of file descriptors (ulimit -n) allows only {self._most_connections} connections"

    def _forget(self, connection: AcceptedConnection) -> None:
        with self._lock:
            if connection in self._connections:
                self._remove(connection)

    def _remove(self, connection: AcceptedConnection) -> None:
        """Remove a connection from the table of open connections. The caller holds the lock."""
        self._limits.remove(connection.client.host, self._connections.pop(connection))

    def _close_listeners(self) -> None:
        for bound, _ in self._bound:
            with contextlib.suppress(OSError):
                bound.shutdown(socket.SHUT_RDWR)  # ends the call of accept() in the listener's thread
            bound.close()
