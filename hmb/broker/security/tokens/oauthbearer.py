r"""The broker's side of OAUTHBEARER: a state machine that receives one token.

An OAUTHBEARER client sends its token in one message. The byte 1 (`\x01`) ends the header `n,,`, the token and
the message:
    n,,\x01auth=Bearer TOKEN\x01\x01

If the token is valid, the broker answers with an empty message. If the token is not valid, the broker answers with a
short JSON text, and the client acknowledges this text with the byte 1. After this acknowledgement, the broker refuses
the login.

A client can add *extensions* to its first message, before the last byte (`\x01`). Each extension is a pair
`name=value`, followed by a byte `\x01`. HMB ignores the extensions.

Anyone who has the token can log in until the token expires. Without TLS, an attacker could read the token on
the network. So use OAUTHBEARER only on listeners with TLS.

Source: RFC 7628, KIP-255, KIP-768; `OAuthBearerSaslServer` of Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from hmb.security.protocols import ANOTHER_NAME
from hmb.state_table import StateTable

CLIENT_MESSAGE = re.compile(r"n,(?:a=(?P<acts_as>[^,]*))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)+)\x01")
BEARER = re.compile(r"bearer +(?P<token>[-_.+~/=A-Za-z0-9]+)", re.IGNORECASE)
INVALID = b'{"status":"invalid_token"}'


class TokenError(ValueError):
    """A client's token, or the message that contains the token, is not valid.

    The text of this error never contains the token.
    """


class Token(NamedTuple):
    """The checked content of a token: the name of the client, and the seconds until the token expires."""

    user: str
    lifetime: float


Check = Callable[[str], Token]  # returns the content of a token; raises TokenError


class OauthState(Enum):
    """The message that the broker expects next from the client."""

    TOKEN = "the client's token"
    ACKNOWLEDGEMENT = "the client's acknowledgement of the error"
    COMPLETE = "nothing, the client is authenticated"
    REFUSED = "nothing, the client is refused"


class OauthEvent(Enum):
    """The result of checking one message from the client."""

    PROVED = "the token is valid"
    INVALID = "the token is not valid"
    WRONG = "the message is malformed, or the client has acknowledged the error"


OAUTHBEARER = StateTable(
    (OauthState.TOKEN, OauthEvent.PROVED, OauthState.COMPLETE),
    (OauthState.TOKEN, OauthEvent.INVALID, OauthState.ACKNOWLEDGEMENT),
    (OauthState.TOKEN, OauthEvent.WRONG, OauthState.REFUSED),
    (OauthState.ACKNOWLEDGEMENT, OauthEvent.WRONG, OauthState.REFUSED),
)


class OauthExchange:
    """One login of a client with OAUTHBEARER. The function `check` verifies the token."""

    is_delegated = False

    def __init__(self, check: Check) -> None:
        self._check = check
        self.state = OauthState.TOKEN
        self.user = ""
        self.lifetime: float | None = None  # seconds until the token expires
        self._problem = ""

    @property
    def is_complete(self) -> bool:
        return self.state is OauthState.COMPLETE

    def receive(self, message: bytes) -> bytes:
        """Take the client's next message, and return the broker's response. Raises TokenError."""
        if self.state is OauthState.ACKNOWLEDGEMENT:
            self.state = OAUTHBEARER.next(self.state, OauthEvent.WRONG)
            raise TokenError(self._problem)
        try:
            acts_as, text = _parsed(message)
        except TokenError:
            self.state = OAUTHBEARER.next(self.state, OauthEvent.WRONG)
            raise
        try:
            token = self._check(text)
            if acts_as not in ("", token.user):
                raise TokenError(ANOTHER_NAME)
        except TokenError as error:
            self._problem = str(error)
            self.state = OAUTHBEARER.next(self.state, OauthEvent.INVALID)
            return INVALID
        self.user, self.lifetime = token.user, token.lifetime
        self.state = OAUTHBEARER.next(self.state, OauthEvent.PROVED)
        return b""


def _parsed(message: bytes) -> tuple[str, str]:
    """Return the user name and the token from the client's message. The user name may be empty.

    Raises TokenError if the message is malformed or contains no token.
    """
    try:
        match = CLIENT_MESSAGE.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise TokenError("the message is malformed")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01")[:-1])
    bearer = BEARER.fullmatch(pairs.get("auth", ""))
    if bearer is None:
        raise TokenError("the message contains no Bearer token")
    return match["acts_as"] or "", bearer["token"]
