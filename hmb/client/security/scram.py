"""The client's side of SCRAM: it makes the two messages of the client, and checks the two messages of the broker.

This module makes and checks messages, but it does not send or receive them. The module `hmb.security.scram`
explains the messages. The broker's last message contains a signature. Only a server that stores the user's
credentials can compute this signature. The client checks it, and refuses a server that only pretends to be the
broker.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from enum import Enum

from hmb.security import scram
from hmb.security.scram import SCRAM_MECHANISMS, ScramError
from hmb.state_table import StateTable


class ScramStep(Enum):
    """The message that the client expects next from the broker."""

    SERVER_FIRST = "the broker's first message"
    SERVER_FINAL = "the broker's final message"
    COMPLETE = "nothing, the login is complete"


class ScramReply(Enum):
    """The two messages of the broker in a successful login."""

    CHALLENGED = "the broker has sent the salt and its nonce"
    SIGNED = "the broker has proved that it knows the user's keys"


SCRAM_CLIENT = StateTable(
    (ScramStep.SERVER_FIRST, ScramReply.CHALLENGED, ScramStep.SERVER_FINAL),
    (ScramStep.SERVER_FINAL, ScramReply.SIGNED, ScramStep.COMPLETE),
)
HEADER = "n,,"


class ScramLogin:
    """One login with SCRAM."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        new_nonce: Callable[[], str] = scram.new_nonce,
        *,
        is_token: bool = False,
    ) -> None:
        """Prepare a login with a username and a password, or with a delegation token.

        If `is_token` is True, `username` is the token's id, and `password` is the token's HMAC.
        """
        self._mechanism = SCRAM_MECHANISMS[mechanism]
        self._password = password
        self._nonce = new_nonce()
        extension = f",{scram.TOKEN_EXTENSION}" if is_token else ""
        self._bare = f"n={scram.escaped(username)},r={self._nonce}{extension}"
        self._signature = b""
        self.state = ScramStep.SERVER_FIRST

    @property
    def is_complete(self) -> bool:
        return self.state is ScramStep.COMPLETE

    def first(self) -> bytes:
        """Return the client's first message."""
        return (HEADER + self._bare).encode()

    def receive(self, message: bytes) -> bytes:
        """Take the broker's next message, and return the client's next message. Raises ScramError."""
        if self.state is ScramStep.SERVER_FIRST:
            response = self._prove(message)
            self.state = SCRAM_CLIENT.next(self.state, ScramReply.CHALLENGED)
            return response
        final = scram.matched(scram.SERVER_FINAL, message, "server final")
        if final["error"]:
            raise ScramError(f"the broker refuses the login: {final['error']}")
        if not hmac.compare_digest(scram.decoded(final["signature"]), self._signature):
            raise ScramError("the broker's signature is wrong and does not prove that the broker knows the user's keys")
        self.state = SCRAM_CLIENT.next(self.state, ScramReply.SIGNED)
        return b""

    def _prove(self, message: bytes) -> bytes:
        first = scram.matched(scram.SERVER_FIRST, message, "server first")
        if not first["nonce"].startswith(self._nonce) or first["nonce"] == self._nonce:
            raise ScramError("the broker's nonce must begin with the client's nonce, and must be longer")
        iterations = int(first["iterations"])
        if not scram.MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            allowed = f"{scram.MIN_ITERATIONS} to {MAX_ITERATIONS}"
            raise ScramError(f"the broker asks for {iterations} iterations, but the client allows only {allowed}")
        salted = scram.salted_password(self._mechanism, self._password, scram.decoded(first["salt"]), iterations)
        bare = f"c={scram.encoded(HEADER.encode())},r={first['nonce']}"
        messages = f"{self._bare},{message.decode()},{bare}"
        self._signature = scram.server_signature(
            self._mechanism, scram.server_key_of(self._mechanism, salted), messages
        )
        return f"{bare},p={scram.encoded(scram.client_proof(self._mechanism, salted, messages))}".encode()


MAX_ITERATIONS = 1_000_000  # about half a second of work; without a limit, a broker could keep a client busy for hours
