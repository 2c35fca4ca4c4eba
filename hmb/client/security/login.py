"""Logs in with SASL: sends SaslHandshake, and then SaslAuthenticate for each message of the mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hmb.client.errors import response_error
from hmb.client.security.oauth import OauthLogin
from hmb.client.security.scram import ScramLogin
from hmb.client.security.settings import ClientSecurity
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from hmb.protocol.schema import Request
from hmb.security.scram import SCRAM_MECHANISMS, ScramError

Send = Callable[[Request], Any]  # sends a request and returns the response


class MechanismLogin(Protocol):
    """The client's side of a mechanism: PlainLogin, ScramLogin or OauthLogin."""

    @property
    def is_complete(self) -> bool: ...

    def first(self) -> bytes:
        """Return the client's first message. Raises KafkaError if the client cannot make this message."""

    def receive(self, message: bytes) -> bytes:
        """Take the broker's next message, and return the client's next message. Raises ScramError."""


class PlainLogin:
    """The login with PLAIN: the client sends its name and its password in one message."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()
        self.is_complete = False

    def first(self) -> bytes:
        return self._message

    def receive(self, message: bytes) -> bytes:
        self.is_complete = True
        return b""


def log_in(security: ClientSecurity, send: Send, address: str) -> float | None:
    """Log in to a broker. Return the lifetime of the session in seconds, or None for no limit.

    Raises KafkaError, for example SASL_AUTHENTICATION_FAILED.
    """
    handshake = send(SaslHandshakeRequest(mechanism=security.mechanism))
    if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(handshake.mechanisms)
        problem = f"{address}: the broker does not offer {security.mechanism}, but {offered or 'no mechanism'}"
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, problem)
    if handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        problem = f"{address}: this listener does not use SASL; use security.protocol=PLAINTEXT or SSL"
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, problem)
    if handshake.error_code:
        raise response_error(address, handshake.error_code)
    login = _login_of(security)
    message = login.first()
    while True:
        response = send(SaslAuthenticateRequest(auth_bytes=message))
        if response.error_code:
            raise response_error(address, response.error_code, response.error_message)
        try:
            message = login.receive(bytes(response.auth_bytes))
        except ScramError as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"{address}: {error}") from None
        if login.is_complete:
            return response.session_lifetime_ms / 1000 or None


def _login_of(security: ClientSecurity) -> MechanismLogin:
    if security.mechanism in SCRAM_MECHANISMS:
        return ScramLogin(security.mechanism, security.username, security.password, is_token=security.is_token)
    if security.token is not None:
        return OauthLogin(security.token)
    return PlainLogin(security.username, security.password)
