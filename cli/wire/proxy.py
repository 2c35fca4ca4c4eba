"""A proxy between clients and brokers. It has one listener for each broker, and two threads for each connection.

In the proxy, each message passes through one of the two streams of its connection:
    client  --request-->   RequestStream    --request-->   broker
            <--response--  ResponseStream   <--response--

For each client, the proxy opens a connection to a broker. One thread passes on the requests, and another thread passes
on the responses. Each thread receives bytes, passes them to its stream (`frame_streams`), and sends the bytes that the
stream returns. The proxy stores no messages in a queue. If a client reads slowly, the thread waits in `sendall` and
receives no more bytes, so the broker must also wait. When one side stops sending, the proxy reports this to the other
side.

A response can contain the addresses of brokers. If a client connected to these addresses, its messages would
not pass through the proxy. The proxy therefore opens a listener for each broker, on the next free port. In the
response, it replaces the broker's address by the address of the listener (`readdressing`).

The first listener of the proxy connects clients to the address that the user has typed, for example
`localhost:9092`. A response can contain another address, for example 127.0.0.1:9092. If the cluster has only
one broker, both addresses lead to this broker, so the proxy opens no second listener.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from hmb.client.connection import CONNECT_TIMEOUT

from .frame_streams import OpenRequests, RequestStream, ResponseStream, SeenFrame
from .opened_tls import OpenedTls, TlsContexts
from .readdressing import Address

CHUNK = 1 << 16  # the maximum number of bytes that one recv() returns
CLOSE_TIMEOUT = 2.0  # seconds
BACKLOG = 128  # the maximum number of connections that wait to be accepted
MAX_LISTENERS = 100  # the maximum number of listeners; each broker has one


class Link(NamedTuple):
    """A connection of a client through the proxy to a broker."""

    number: int
    client: Address
    broker: Address


class Observer(NamedTuple):
    """Two functions that the threads of the proxy call: `on_frame` for each frame, and `on_event` for each other event.

    The function `on_event` receives a text that describes the event. If one of the two functions raises an error, the
    proxy ends.
    """

    on_frame: Callable[[Link, SeenFrame], None]
    on_event: Callable[[Link | None, str], None]


Wire: TypeAlias = socket.socket | OpenedTls


class Proxy:
    """A running proxy. The constructor starts the proxy, and `close` ends it."""

    def __init__(
        self, listen: Address, servers: Sequence[Address], observer: Observer, tls: TlsContexts | None = None
    ) -> None:
        self._observer, self._tls = observer, tls
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # guards all fields below
        self._sockets: set[socket.socket] = set()
        # The key is a broker's address. The value is the address of the proxy's listener for this broker.
        self._listeners: dict[Address, Address] = {}
        self._threads: set[threading.Thread] = set()
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self.address = self._listen(listen, servers)

    def wait(self, timeout: float) -> bool:
        """Wait until the proxy has ended, but at most `timeout` seconds. Return whether the proxy has ended.

        If an error has ended the proxy, raise this error.
        """
        self._over.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return self._over.is_set()

    def close(self) -> None:
        """Close all listeners and connections."""
        self._over.set()
        with self._lock:
            sockets, threads = list(self._sockets), list(self._threads)
        for each in sockets:
            _shut(each)
        # A thread can hang because it prints to a full pipe that nobody reads. `close` therefore waits at most
        # CLOSE_TIMEOUT seconds for all threads together.
        deadline = time.monotonic() + CLOSE_TIMEOUT
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for each in sockets:
            each.close()

    # Listeners

    def _listen(self, at: Address, servers: Sequence[Address]) -> Address:
        """Open a listener at the address `at`, and return the address of the listener.

        If `at` has the port 0, the operating system chooses a free port. Raises OSError if the port is in use. When a
        client connects to the listener, the proxy connects to the first address in `servers` that it can reach.
        """
        family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
        listener = socket.create_server(at, family=family, backlog=BACKLOG)
        address = Address(*listener.getsockname()[:2])
        self._keep(listener)
        self._start(f"listener-{address.port}", lambda: self._accept(listener, servers))
        self._observer.on_event(None, f"listening on {address} for {','.join(map(str, servers))}")
        return address

    def _accept(self, listener: socket.socket, servers: Sequence[Address]) -> None:
        while not self._over.is_set():
            try:
                client, peer = listener.accept()
            except OSError:
                if self._over.is_set():  # `close` has closed the listener.
                    return
                raise
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._keep(client)
            link = Link(next(self._numbers), Address(*peer[:2]), servers[0])
            self._start(f"requests-{link.number}", lambda c=client, li=link: self._serve(c, li, servers))  # type: ignore[misc]

    def _address_of(self, broker: Address, is_only: bool, here: Address) -> Address:
        """Return the address at which the client can reach `broker` through the proxy.

        `here` is the address of the proxy to which the client is connected, so the client can reach this host. The
        returned address consists of the host of `here` and the port of the proxy's listener for `broker`. If the proxy
        has no such listener yet, the method opens one.

        If the proxy already has MAX_LISTENERS listeners, the method opens no new listener, and returns the broker's
        own address.
        """
        with self._lock:
            if is_only and broker not in self._listeners:
                self._listeners[broker] = self.address
            known = self._listeners.get(broker)
            is_full = len(self._listeners) >= MAX_LISTENERS
        if known is None:
            if is_full:
                return broker
            known = self._open(broker)
        return Address(here.host, known.port)

    def _open(self, broker: Address) -> Address:
        """Open a listener for `broker` on the next free port, and return its address."""
        host, first = self.address
        for port in (*range(first + 1, min(first + 1 + MAX_LISTENERS, 1 << 16)), 0):
            with contextlib.suppress(OSError):
                address = self._listen(Address(host, port), [broker])
                with self._lock:
                    return self._listeners.setdefault(broker, address)
        return broker

    # Connections

    def _serve(self, client: socket.socket, link: Link, servers: Sequence[Address]) -> None:
        """Connect to a broker for a client. Then pass on requests in this thread, and responses in a new thread."""
        try:
            broker, server = _connect(servers)
        except OSError as error:
            self._observer.on_event(link, f"cannot connect to {link.broker}: {error.strerror or error}")
            self._forget(client)
            return
        self._keep(broker)
        here = Address(*client.getsockname()[:2])
        self._observer.on_event(link, f"opened by {link.client}, to {link.broker}")
        try:
            if (wires := self._opened(client, broker, server, link)) is not None:
                self._pass_on(*wires, link, here)
        finally:
            self._forget(client)
            self._forget(broker)
            if not self._over.is_set():
                self._observer.on_event(link, "closed")

    def _opened(
        self, client: socket.socket, broker: socket.socket, server: Address, link: Link
    ) -> tuple[Wire, Wire] | None:
        """Return the connection to the client and the connection to the broker.

        If the proxy uses TLS, first make the TLS handshake of each connection. If a handshake fails, return None.
        """
        if self._tls is None:
            return client, broker
        side = "broker"
        try:
            far = OpenedTls(broker, self._tls.for_brokers, server.host)
            side = "client"
            return OpenedTls(client, self._tls.for_clients, None), far
        except OSError as error:
            why = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
            self._observer.on_event(link, f"the TLS handshake with the {side} failed: {why}")
            return None

    def _pass_on(self, client: Wire, broker: Wire, link: Link, here: Address) -> None:
        """Pass on the messages of the client and of the broker, until both have stopped sending."""
        open_requests = OpenRequests()

        def show(seen: SeenFrame) -> None:
            self._observer.on_frame(link, seen)

        def warn(text: str) -> None:
            self._observer.on_event(link, text)

        def replacement(broker: Address, is_only: bool) -> Address:
            return self._address_of(broker, is_only, here)

        requests = RequestStream(open_requests, show, warn)
        responses = ResponseStream(open_requests, show, warn, replacement)
        back = self._start(f"responses-{link.number}", lambda: _pump(broker, client, responses))
        try:
            _pump(client, broker, requests)
        finally:
            back.join()  # The thread ends when the broker closes the connection, or `close` shuts all sockets down.

    # Threads and sockets

    def _start(self, name: str, target: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                target()
            except BaseException as error:  # noqa: BLE001 - `wait` raises it
                self._end(error)
            finally:
                with self._lock:
                    self._threads.discard(thread)

        thread = threading.Thread(target=run, name=name, daemon=True)
        # At its end, a thread removes itself from `_threads`. The lock delays this removal until `add` has added the
        # thread.
        with self._lock:
            thread.start()
            self._threads.add(thread)
        return thread

    def _end(self, failure: BaseException) -> None:
        if not self._over.is_set():
            self._failure = failure
            self._over.set()

    def _keep(self, each: socket.socket) -> None:
        with self._lock:
            self._sockets.add(each)
        if self._over.is_set():  # `close` may have run before the socket was in the set.
            _shut(each)

    def _forget(self, each: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(each)
        each.close()


def _connect(servers: Sequence[Address]) -> tuple[socket.socket, Address]:
    """Connect to the first of these servers that can be reached. Raises OSError if none can be reached."""
    failure = OSError("no server")
    for server in servers:
        try:
            connection = socket.create_connection(server, CONNECT_TIMEOUT)
        except OSError as error:
            failure = error
            continue
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, server
    raise failure


def _pump(source: Wire, target: Wire, stream: RequestStream | ResponseStream) -> None:
    """Receive bytes from `source`, let `stream` process them, and send the result to `target`.

    When `source` sends no more bytes, the function closes the sending direction of the connection to `target`.

    If `target` accepts no more bytes, the function closes the connection to `source`.
    """
    try:
        while data := _received(source):
            if not _is_sent(target, stream.feed(data)):
                _shut(source)
                return
    except BaseException:  # After an error, both directions of the connection must end.
        _shut(source)
        _shut(target)
        raise
    _is_sent(target, stream.rest())
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _received(source: Wire) -> bytes:
    """Wait for bytes, and return them. Return empty bytes if the connection has ended or is broken."""
    try:
        return source.recv(CHUNK)
    except OSError:
        return b""


def _is_sent(target: Wire, data: bytes) -> bool:
    try:
        target.sendall(data)
    except OSError:
        return False
    return True


def _shut(each: Wire) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
