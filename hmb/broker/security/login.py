"""Handles the login of one connection on a SASL listener, from SaslHandshake to an authenticated principal.

A client may first send ApiVersions. The client then chooses a mechanism with SaslHandshake, and sends the messages of
this mechanism with SaslAuthenticate. If an unauthenticated client sends any other request, the broker closes the
connection without decoding the request. If the broker refuses a login, it sends the error and closes the connection.

After a SaslHandshake of version 0, the client sends the messages of the mechanism as frames without a header. Clients
before Kafka 1.0 use this version (KIP-152).

If `connections.max.reauth.ms` is set, a session ends after this time. If the client has logged in with a token, the
session ends at the latest when the token expires. Before a session ends, the client can authenticate again on the same
connection (KIP-368), but only as the same user.

Source: KIP-43, KIP-152, KIP-368; `SaslServerAuthenticator` of Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from hmb.broker.errors import CloseConnection
from hmb.broker.security.plain import PlainError
from hmb.broker.security.principals import ANONYMOUS, USER
from hmb.broker.security.tokens.oauthbearer import TokenError
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.framing import frame
from hmb.protocol.primitives import Part
from hmb.security.scram import ScramError
from hmb.state_table import StateTable

LOGGER = logging.getLogger(__name__)
BEFORE = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}  # served without authentication
MAX_BEFORE = 512 * 1024  # bytes; the largest request before authentication


class Exchange(Protocol):
    """The broker's side of one SASL login: a PlainExchange, ScramExchange or OauthExchange."""

    user: str
    lifetime: float | None  # seconds until the client's token expires; None for a login with a password

    @property
    def is_complete(self) -> bool: ...

    @property
    def is_delegated(self) -> bool:
        """Whether the client logs in with a delegation token."""

    def receive(self, message: bytes) -> bytes:
        """Take the client's next message, and return the broker's response.

        Raises PlainError, ScramError or TokenError.
        """


class LoginState(Enum):
    """The state of the login of one connection."""

    NEW = "the client has not chosen a mechanism"
    EXCHANGING = "messages of the mechanism are exchanged"
    AUTHENTICATED = "the client is authenticated"
    AGAIN = "the client authenticates again"
    REFUSED = "the client is refused"


class LoginEvent(Enum):
    """The result of one step of a login.

    The first step is the SaslHandshake request, in which the client chooses a mechanism. Each further step is one
    message that the client sends for this mechanism.
    """

    CHOSEN = "the client has chosen a mechanism"
    CONTINUED = "the mechanism needs another message"
    PROVED = "the client has proved its name"
    WRONG = "the mechanism is unknown, or the proof is wrong"


LOGIN = StateTable(
    (LoginState.NEW, LoginEvent.CHOSEN, LoginState.EXCHANGING),
    (LoginState.NEW, LoginEvent.WRONG, LoginState.REFUSED),
    (LoginState.EXCHANGING, LoginEvent.CONTINUED, LoginState.EXCHANGING),
    (LoginState.EXCHANGING, LoginEvent.PROVED, LoginState.AUTHENTICATED),
    (LoginState.EXCHANGING, LoginEvent.WRONG, LoginState.REFUSED),
    (LoginState.AUTHENTICATED, LoginEvent.CHOSEN, LoginState.AGAIN),
    (LoginState.AUTHENTICATED, LoginEvent.WRONG, LoginState.REFUSED),
    (LoginState.AGAIN, LoginEvent.CONTINUED, LoginState.AGAIN),
    (LoginState.AGAIN, LoginEvent.PROVED, LoginState.AUTHENTICATED),
    (LoginState.AGAIN, LoginEvent.WRONG, LoginState.REFUSED),
)


class Login:
    """The login of one connection. Only the thread that handles the connection's requests uses this object."""

    def __init__(
        self,
        mechanisms: Mapping[str, Callable[[], Exchange]],
        clock: Callable[[], float],
        sessions: Mapping[str, float],
        on_success: Callable[[str], None],
        on_failure: Callable[[str], None],
    ) -> None:
        """Prepare a login with one of `mechanisms`.

        `sessions` contains the longest lifetime of a session, in seconds, for each mechanism. 0 means no limit. After a
        successful login, `on_success` is called with the principal of the client. After a refused login, `on_failure`
        is called with a line for the log.
        """
        self._mechanisms = mechanisms
        self._clock = clock
        self._sessions = sessions
        self._session: float | None = None  # the lifetime of the present session; None means unlimited
        self._on_success, self._on_failure = on_success, on_failure
        self.state = LoginState.NEW
        self.principal = ANONYMOUS
        self.is_delegated = False  # whether the client has logged in with a delegation token
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._sends_raw_tokens = False
        self._ends: float | None = None  # the session ends when `clock` returns a later time; None means no limit

    @property
    def is_authenticated(self) -> bool:
        return self.state in (LoginState.AUTHENTICATED, LoginState.AGAIN)

    @property
    def expects_raw_token(self) -> bool:
        """Whether the client's next frame has no request header and contains only a message of the SASL mechanism."""
        return self._sends_raw_tokens and self.state in (LoginState.EXCHANGING, LoginState.AGAIN)

    @property
    def lifetime_ms(self) -> int:
        """The lifetime of the session in ms, or 0 if it is unlimited."""
        return int((self._session or 0) * 1000) if self.state is LoginState.AUTHENTICATED else 0

    def admit(self, api_key: int) -> None:
        """Raise CloseConnection if the client must not send this request now."""
        if self.state is LoginState.REFUSED:
            raise CloseConnection("the client sent a request after the broker refused its login")
        if api_key in BEFORE:
            return
        if not self.is_authenticated:
            raise CloseConnection(f"the client sent a request with the API key {api_key} before it logged in")
        if self._ends is not None and self._clock() > self._ends:
            raise CloseConnection("the client's session has ended, and the client did not log in again")

    def choose(self, mechanism: str, version: int) -> None:
        """Handle a SaslHandshake. Raises UNSUPPORTED_SASL_MECHANISM and ILLEGAL_SASL_STATE."""
        if not LOGIN.allows(self.state, LoginEvent.CHOSEN) or (self.is_authenticated and self._ends is None):
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "SaslHandshake is not expected now")
        if mechanism not in self._mechanisms:
            self._refuse(f"the client chose the mechanism {mechanism[:100]!r}, which this listener does not offer")
            raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"use one of {', '.join(self._mechanisms)}")
        self._mechanism, self._exchange = mechanism, self._mechanisms[mechanism]()
        self._sends_raw_tokens = version == 0
        self.state = LOGIN.next(self.state, LoginEvent.CHOSEN)

    @property
    def mechanisms(self) -> list[str]:
        """The names of the mechanisms that the client can choose."""
        return list(self._mechanisms)

    def receive(self, message: bytes) -> bytes:
        """Handle one message of the mechanism. Raises ILLEGAL_SASL_STATE and SASL_AUTHENTICATION_FAILED."""
        exchange = self._exchange
        if exchange is None:
            raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate is not expected now")
        try:
            response = exchange.receive(message)
        except (PlainError, ScramError, TokenError) as error:
            self._refuse(str(error), exchange.user)
            raise self._failure() from None
        if exchange.is_complete:
            self._complete(f"{USER}:{exchange.user}", exchange)
        else:
            self.state = LOGIN.next(self.state, LoginEvent.CONTINUED)
        return response

    def raw_response(self, message: bytes) -> list[Part]:
        """Handle a login message of an old client, and return the response. Both are frames without a Kafka header.

        Raises CloseConnection if the broker refuses the login. A response without a header has no field for an error
        code, so the broker can only close the connection.
        """
        try:
            return frame([self.receive(message)])
        except KafkaError as error:
            raise CloseConnection(error.message) from None

    def _complete(self, principal: str, exchange: Exchange) -> None:
        if not principal.isprintable():  # The log contains the name: a line break in it would add a false line.
            self._refuse("the name contains a control character", exchange.user)
            raise self._failure()
        if self.state is LoginState.AGAIN and principal != self.principal:
            self._refuse(f"the client logged in again as {principal} instead of {self.principal}")
            raise self._failure()
        self.state = LOGIN.next(self.state, LoginEvent.PROVED)
        self.principal, self.is_delegated, self._exchange = principal, exchange.is_delegated, None
        longest = self._sessions.get(self._mechanism) or None
        limits = [each for each in (longest, exchange.lifetime) if each is not None]
        self._session = min(limits, default=None)
        self._ends = None if self._session is None else self._clock() + self._session
        self._on_success(principal)

    def _refuse(self, reason: str, user: str = "") -> None:
        """End the login. The log contains the name of the user, but the response to the client has no details."""
        self.state, self._exchange = LOGIN.next(self.state, LoginEvent.WRONG), None
        self._on_failure(f"login of {user[:100]!r} with {self._mechanism or 'no mechanism'} refused: {reason}")

    def _failure(self) -> KafkaError:
        text = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
        return KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"{text} {self._mechanism}")
