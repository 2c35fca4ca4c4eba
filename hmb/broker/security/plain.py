"""The broker's side of PLAIN: the client sends its name and its password in one message.

The client's message contains three texts, separated by zero bytes (NUL):
    authorization identity  NUL  user name  NUL  password

The client sends two names. The user name says who the client is. The *authorization identity* says for which
user the client wants to send requests. In HMB, a client can send requests only as its own user. The
authorization identity must therefore be empty or equal to the user name.

PLAIN sends the password without encryption. Use PLAIN only on listeners with TLS. The users and their passwords are in
the broker's settings.

Source: RFC 4616, KIP-43.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from enum import Enum

from hmb.security.protocols import ANOTHER_NAME, WRONG_PASSWORD
from hmb.state_table import StateTable


class PlainError(ValueError):
    """The message is malformed, or the name or the password is wrong."""


class PlainState(Enum):
    """The message that the broker expects next from the client."""

    MESSAGE = "the client's message"
    COMPLETE = "nothing, the client is authenticated"
    REFUSED = "nothing, the client is refused"


class PlainEvent(Enum):
    """The result of the check of the client's message."""

    PROVED = "the password is right"
    WRONG = "the message is malformed, or the password is wrong"


PLAIN = StateTable(
    (PlainState.MESSAGE, PlainEvent.PROVED, PlainState.COMPLETE),
    (PlainState.MESSAGE, PlainEvent.WRONG, PlainState.REFUSED),
)
NOBODY = secrets.token_hex()  # the password of users that do not exist; nobody knows it


class PlainExchange:
    """One login of a client with PLAIN. `passwords` maps the names of the users to their passwords."""

    is_delegated = False

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.state = PlainState.MESSAGE
        self.user = ""
        self.lifetime: float | None = None  # A password does not expire.

    @property
    def is_complete(self) -> bool:
        return self.state is PlainState.COMPLETE

    def receive(self, message: bytes) -> bytes:
        """Take the client's message, and return an empty response. Raises PlainError."""
        try:
            self._check(message)
        except PlainError:
            self.state = PLAIN.next(self.state, PlainEvent.WRONG)
            raise
        self.state = PLAIN.next(self.state, PlainEvent.PROVED)
        return b""

    def _check(self, message: bytes) -> None:
        try:
            acts_as, self.user, password = message.decode().split("\0")
        except ValueError:  # UnicodeDecodeError is a kind of ValueError.
            raise PlainError("the message is malformed") from None
        if acts_as not in ("", self.user):
            raise PlainError(ANOTHER_NAME)
        # The duration of a login must not show whether a user exists. For an unknown user, the broker therefore
        # compares the client's password with the random password NOBODY. It compares hashes, which have equal lengths.
        expected = self._passwords.get(self.user, NOBODY)
        if not hmac.compare_digest(_digest(password), _digest(expected)):
            raise PlainError(WRONG_PASSWORD)


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()
