"""The broker's side of a SCRAM login: a state machine that answers the client's two messages.

`ScramExchange` is a state machine that does not read or write a socket. The method `receive` takes a message of the
client and returns the broker's response. The table SCRAM contains the states. A refused exchange never continues: a
client that wants to try again opens a new connection.

A client must not be able to find out which users exist. If a user does not exist, the broker therefore continues the
login with a *decoy*: a credential for which no password exists. The login then fails in the same way as with a wrong
password. During a login, the client sees the salt of the credential. The salt of a real user is the same in each
login. The broker therefore also uses the same salt in each login with the same unknown name.

A client can also log in with a delegation token (tokens/delegation.py) instead of a user's password. The client then
sends the id of the token as its name, and the token's HMAC is the password. The client's first message contains the
extension `tokenauth=true`, so the broker knows that the name is the id of a token.

Older versions of Kafka did not check the nonce in the client's final message (CVE-2024-56128). HMB requires exactly the
nonce that the broker has sent. The comparison takes the same time for every wrong nonce. The time therefore does not
show a client how many bytes of its guess are right.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from hmb.security import scram
from hmb.security.protocols import ANOTHER_NAME, WRONG_PASSWORD
from hmb.security.scram import ScramCredential, ScramError, ScramMechanism
from hmb.state_table import StateTable


class TokenCredential(NamedTuple):
    """The data of a delegation token: its credential, the name of its owner, and the seconds until it expires."""

    credential: ScramCredential
    owner: str
    lifetime: float


class ScramState(Enum):
    """The message that the broker expects next from the client."""

    CLIENT_FIRST = "the client's first message"
    CLIENT_FINAL = "the client's final message"
    COMPLETE = "nothing, the client is authenticated"
    REFUSED = "nothing, the client is refused"


class ScramEvent(Enum):
    """The result of checking a client's message."""

    NAMED = "the client has sent its name and its nonce"
    PROVED = "the proof is right"
    WRONG = "the message is malformed, or the proof is wrong"


SCRAM = StateTable(
    (ScramState.CLIENT_FIRST, ScramEvent.NAMED, ScramState.CLIENT_FINAL),
    (ScramState.CLIENT_FIRST, ScramEvent.WRONG, ScramState.REFUSED),
    (ScramState.CLIENT_FINAL, ScramEvent.PROVED, ScramState.COMPLETE),
    (ScramState.CLIENT_FINAL, ScramEvent.WRONG, ScramState.REFUSED),
)
# A function that returns the credential of a user. For an unknown user, it returns a false credential (decoys.py).
Find = Callable[[ScramMechanism, str], ScramCredential]
# A function that returns the credential of a delegation token. For an unknown token, the function invents a credential.
# Clients see only a failed login, not whether the token exists.
FindToken = Callable[[ScramMechanism, str], TokenCredential]


class ScramExchange:
    """One login of a client with SCRAM."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Find,
        find_token: FindToken,
        nonce: Callable[[], str] = scram.new_nonce,
    ) -> None:
        self._mechanism = mechanism
        self._find, self._find_token = find, find_token
        self._new_nonce = nonce
        self.state = ScramState.CLIENT_FIRST
        self.user = ""  # the name of the client; the broker has verified this name if `state` is COMPLETE
        self.lifetime: float | None = None  # A password does not expire.
        self._header = ""
        self._nonce = ""
        self._messages = ""  # all messages until now; the proof is computed from this text
        self._credential: ScramCredential | None = None
        self._token: TokenCredential | None = None  # set if the client logs in with a delegation token

    @property
    def is_complete(self) -> bool:
        return self.state is ScramState.COMPLETE

    @property
    def is_delegated(self) -> bool:
        return self._token is not None

    def receive(self, message: bytes) -> bytes:
        """Take the client's next message, and return the broker's response. Raises ScramError."""
        try:
            first = SCRAM.allows(self.state, ScramEvent.NAMED)
            response = self._receive_first(message) if first else self._receive_final(message)
        except ScramError:
            self.state, self._credential = SCRAM.next(self.state, ScramEvent.WRONG), None
            raise
        self.state = SCRAM.next(self.state, ScramEvent.NAMED if first else ScramEvent.PROVED)
        return response

    def _receive_first(self, message: bytes) -> bytes:
        first = scram.matched(scram.CLIENT_FIRST, message, "client first")
        self.user, self._header = scram.unescaped(first["name"]), first["header"]
        if scram.unescaped(first["acts_as"] or "") not in ("", self.user):
            raise ScramError(ANOTHER_NAME)
        if scram.TOKEN_EXTENSION in (first["extensions"] or "").split(","):
            self._token = self._find_token(self._mechanism, self.user)
            self._credential = credential = self._token.credential
        else:
            self._credential = credential = self._find(self._mechanism, self.user)
        self._nonce = first["nonce"] + self._new_nonce()
        response = f"r={self._nonce},s={scram.encoded(credential.salt)},i={credential.iterations}"
        self._messages = f"{first['bare']},{response}"
        return response.encode()

    def _receive_final(self, message: bytes) -> bytes:
        assert self._credential is not None
        final = scram.matched(scram.CLIENT_FINAL, message, "client final")
        if not hmac.compare_digest(final["nonce"], self._nonce):
            raise ScramError("the client's final message does not contain the broker's nonce (a random text)")
        if scram.decoded(final["channel"]) != self._header.encode():
            raise ScramError("the channel binding in the client's final message does not match the first message")
        messages = f"{self._messages},{final['bare']}"
        if not scram.is_valid_proof(self._mechanism, self._credential, messages, scram.decoded(final["proof"])):
            raise ScramError(WRONG_PASSWORD)
        self._check_unchanged()
        if self._token is not None:
            self.user, self.lifetime = self._token.owner, self._token.lifetime
        signature = scram.server_signature(self._mechanism, self._credential.server_key, messages)
        return f"v={scram.encoded(signature)}".encode()

    def _check_unchanged(self) -> None:
        """Read the credential again. Raises ScramError if the credential has changed during the login.

        Suppose that an administrator removes the user or the token after the client's first message. Without this
        check, the client could still finish the login.
        """
        if self._token is None:
            present = self._find(self._mechanism, self.user)
        else:
            self._token = self._find_token(self._mechanism, self.user)
            present = self._token.credential
        if present != self._credential:
            raise ScramError("the password was changed or removed, or the token has expired, during the login")
