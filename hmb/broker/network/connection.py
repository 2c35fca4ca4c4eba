"""The connection of one client, with its thread. The thread reads a frame, handles the request and sends the response.

The method `_serve` contains the loop of the connection's thread. `Requests` reads the frames (requests.py),
`Dispatcher.begin` handles one request, and `ResponseQueue.send` writes the response to the socket.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hmb.broker.context import BrokerContext, ConnectedClient
from hmb.broker.dispatch import Dispatcher
from hmb.broker.errors import CloseConnection
from hmb.broker.network.gathering import ResponseQueue
from hmb.broker.network.request_memory import RequestMemory
from hmb.broker.network.requests import FIRST_REQUEST_TIMEOUT, Requests
from hmb.broker.network.sending import STALL
from hmb.broker.security.settings import PLAIN, ListenerSecurity
from hmb.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from hmb.broker.network.connection_login import ConnectionLogin

LOGGER = logging.getLogger(__name__)


class AcceptedConnection:
    """Serves one client until the client disconnects, the client breaks the protocol, or the broker stops.

    The connection has three time limits:

    - A read fails if no bytes arrive for `idle` seconds.
    - Sending a response fails if the client reads the response too slowly (sending.py). The thread checks this
      limit at least every STALL seconds, because no write waits longer.
    - The server closes the connection after the time `deadline`.

    Without TLS, the kernel limits the time of each wait (SO_RCVTIMEO, SO_SNDTIMEO). The method `settimeout` of a
    Python socket would be slower, because Python would call poll() before each read. With TLS, the connection uses
    `settimeout`, because OpenSSL makes the system calls.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        client: ConnectedClient,
        dispatcher: Dispatcher,
        *,
        idle: float,
        max_request: int,
        memory: RequestMemory,
        on_close: Callable[[AcceptedConnection], None],
        security: ListenerSecurity = PLAIN,
    ) -> None:
        self._socket = sock
        self._peer = peer
        self.client = client
        self._dispatcher = dispatcher
        self._tls = tls = security.tls  # None on a listener without TLS
        self._login: ConnectionLogin | None = None  # None on a listener without SASL
        source = sock.fileno() if tls is None else tls.file(sock, idle)
        self._requests = Requests(source, max_request, memory)
        self._on_close = on_close
        self._stopping = False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            sock.settimeout(STALL)  # If no bytes arrive, TlsFile repeats a read for up to `idle` seconds.
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(idle))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(STALL))
        self.thread = threading.Thread(target=self._run, name=f"connection-{peer}", daemon=True)

    def __str__(self) -> str:
        return self._peer

    @property
    def deadline(self) -> float | None:
        """The time (monotonic clock, s) at which the login or the current request must be complete. None: no limit."""
        if self._login is not None and self._login.is_pending:
            return self._login.deadline
        return self._requests.deadline

    @property
    def is_silent(self) -> bool:
        """Whether the broker still waits for the client's first complete request, or for the client's SASL login.

        When too many clients are connected, the server closes a silent connection to make room for a new one.
        """
        return self._requests.is_first or (self._login is not None and self._login.is_pending)

    def require_login(self, security: ListenerSecurity, broker: BrokerContext) -> None:
        """Until the client has logged in, accept only requests that belong to the login (connection_login.py).

        The server calls this method before it starts the thread of the connection.
        """
        # These two imports take 15 ms, and only a broker with SASL needs them.
        from hmb.broker.network.connection_login import ConnectionLogin
        from hmb.broker.security.mechanisms import mechanisms_of

        mechanisms = mechanisms_of(security, broker.security, broker.tokens)
        self._login = ConnectionLogin(
            *(self.client, self._requests, mechanisms, security.sessions, broker.refused_logins, self.stop)
        )

    @property
    def has_client(self) -> bool:
        """Whether the client is still connected.

        Even if the client has disconnected, the connection's thread may still be handling a request.
        """
        descriptor = self._socket.fileno()  # -1 if the connection's thread has closed the socket
        return descriptor >= 0 and not has_disconnected(descriptor)

    def _stay_muted(self) -> None:
        """Read no request until the throttle time of the client is over, or until the connection ends."""
        wait = max(0, round((self.client.muted_until - time.monotonic()) * 1000))
        LOGGER.info("%s has exceeded a quota: the broker reads no request from it for %d ms", self._peer, wait)
        has_disconnected(self._socket, wait)
        self.client.muted_until = 0.0

    def stop(self) -> None:
        """Ask the thread to answer its current request and then to end.

        The thread does not handle the requests after the current request, even if they have already arrived.
        """
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """Close the socket at once, even during a request."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        LOGGER.info("%s connected", self._peer)
        try:
            if self._tls is not None:
                self.client.principal = self._tls.identify(self._socket, FIRST_REQUEST_TIMEOUT)
            self._serve()
        except (CloseConnection, ProtocolError) as error:
            LOGGER.warning("closing %s: %s", self._peer, error)
        except OSError as error:
            LOGGER.info("lost the connection to %s: %s", self._peer, error)
        finally:
            self._socket.close()
            for action in self.client.at_end.values():
                action()
            self._on_close(self)
            LOGGER.info("%s disconnected", self._peer)

    def _serve(self) -> None:
        responses, client = ResponseQueue(self._socket), self.client
        try:
            with self._requests as requests:
                while not self._stopping and (frame := requests.next()) is not None:
                    if self._stopping:
                        break
                    responses.add(self._dispatcher.begin(frame, requests.account))
                    requests.account.close()
                    if client.muted_until or not (
                        requests.has_next_request() and responses.may_wait(requests.api_key)
                    ):
                        responses.send()
                        if client.muted_until:
                            self._stay_muted()
        finally:  # If a request fails, the client still gets the responses to all earlier requests.
            responses.send()


def has_disconnected(sock: socket.socket | int, wait_ms: int = 0) -> bool:
    """Return True if the client has closed the connection, or if the connection is broken.

    If neither happens within `wait_ms` ms, return False. On Linux, POLLRDHUP shows that the client has closed the
    connection, even if the socket still contains unread requests. On every system, poll() reports a broken
    connection (POLLHUP, POLLERR).
    """
    poll = select.poll()
    poll.register(sock, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(wait_ms))


def _timeval(seconds: float) -> bytes:
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1_000_000))
