"""Handles logins on listeners with SASL, and limits what a client can do before its login.

A client needs no password to connect, and each connection costs the broker a thread and memory. Three limits therefore
apply until the client is authenticated:
- *Size.* A request has at most MAX_BEFORE bytes.
- *Time.* The client must be authenticated within FIRST_REQUEST_TIMEOUT seconds.
- *Number.* When `max.connections` clients are connected, the server can close the connection of a client that is not
  authenticated, to accept a new client (server.py: `_make_room`).

If the broker refuses the login, it sends the response after REFUSAL_DELAY seconds, and then closes the connection.
Because of the delay, a client cannot guess many passwords in a short time. The module security/login.py handles the
messages of the login.

You can skip this module in a first reading.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from hmb.broker.context import ConnectedClient
from hmb.broker.network.requests import FIRST_REQUEST_TIMEOUT, Requests
from hmb.broker.security.login import MAX_BEFORE, Exchange, Login
from hmb.broker.security.refused_logins import RefusedLogins

LOGGER = logging.getLogger(__name__)
REFUSAL_DELAY = 0.1  # seconds until the response to a wrong login (`connection.failed.authentication.delay.ms`)


class ConnectionLogin:
    """The login of a client that has connected to a listener with SASL. A refused login ends the connection.

    Until the client has logged in, the broker accepts only small requests. The client must also log in within a
    time limit.
    """

    def __init__(
        self,
        client: ConnectedClient,
        requests: Requests,
        mechanisms: Mapping[str, Callable[[], Exchange]],
        sessions: Mapping[str, float],
        refused_logins: RefusedLogins,
        stop: Callable[[], None],
    ) -> None:
        """Begin the login of a client. The client can choose one of the SASL mechanisms in `mechanisms`.

        Until the login succeeds, a request can have at most MAX_BEFORE bytes. The client must log in within
        FIRST_REQUEST_TIMEOUT seconds.

        `sessions` maps each mechanism to the longest lifetime of a session in seconds. 0 means no limit. A session that
        began with a token also ends when the token expires. Before the session ends, the client must log in again.

        If the login fails, the object calls `stop`, which ends the connection after the current response.
        """
        self._client, self._requests = client, requests
        self._refused_logins, self._stop = refused_logins, stop
        self._largest_request = requests.limit
        requests.limit = min(MAX_BEFORE, requests.limit)
        self.deadline = time.monotonic() + FIRST_REQUEST_TIMEOUT
        self._login = client.login = Login(mechanisms, time.monotonic, sessions, self._succeeded, self._failed)

    @property
    def is_pending(self) -> bool:
        """Whether the client must still log in."""
        return not self._login.is_authenticated

    def _succeeded(self, principal: str) -> None:
        LOGGER.info("%s:%d is authenticated as %s", self._client.host, self._client.port, principal)
        self._client.principal = principal
        self._requests.limit = self._largest_request

    def _failed(self, text: str) -> None:
        self._refused_logins.add(self._client.host, text)
        time.sleep(REFUSAL_DELAY)
        self._stop()
