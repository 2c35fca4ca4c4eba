"""Records a login with SCRAM-SHA-256 between HMB's client and HMB's broker as golden files.

    python -m tests.golden.scram_exchange     (from the project's root)

The user, the password, the salt and both nonces are those of the example in RFC 7677. A reader can therefore compare
the messages with the RFC. In a normal login, the nonces are random, so each login has different messages.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import hmb
from hmb.broker.security import mechanisms, users
from hmb.broker.security.scram import ScramExchange
from hmb.client.security.scram import ScramLogin
from hmb.protocol.connection import ClientConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from hmb.protocol.schema import Request
from hmb.security import scram
from hmb.security.scram import ScramMechanism
from tests.golden.files import write

FOLDER = Path(__file__).parent
USER, PASSWORD, SALT = "user", "pencil", scram.decoded("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, BROKER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SHA_256 = ScramMechanism.SCRAM_SHA_256
SETTINGS = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}


class Recorded(NamedTuple):
    """One request and its response: the name of the golden file, and the frames with their lengths."""

    name: str
    request: bytes
    response: bytes


def exchange() -> Iterator[Recorded]:
    """Log in to a broker on a real socket, with the values of RFC 7677."""
    with hmb.Broker(config=SETTINGS) as broker:
        store = broker._server.context.security
        salted = scram.salted_password(SHA_256, PASSWORD, SALT, 4096)
        users.alter(store, [], [users.upserted(USER, SHA_256, 4096, SALT, salted)])
        tokens = broker._server.context.tokens
        begin = partial(ScramExchange, SHA_256, partial(users.find, store), tokens.find, lambda: BROKER_NONCE)
        with (
            mock.patch.object(mechanisms, "mechanisms_of", lambda *_: {"SCRAM-SHA-256": begin}),
            socket.create_connection((broker.listeners[0].host, broker.listeners[0].port), timeout=30) as connected,
        ):
            client, stream = ClientConnection("hmb"), connected.makefile("rb")

            def ask(name: str, request: Request, version: int) -> tuple[Recorded, bytes]:
                sent = b"".join(bytes(part) for part in client.request(request, version))  # type: ignore[arg-type]
                connected.sendall(sent)
                frame = read_frame(stream, 1 << 20)
                assert frame is not None, "the broker has closed the connection"
                answer = client.receive(memoryview(frame))[1]
                received = len(frame).to_bytes(4) + bytes(frame)
                return Recorded(name, sent, received), bytes(getattr(answer, "auth_bytes", b""))

            login = ScramLogin("SCRAM-SHA-256", USER, PASSWORD, lambda: CLIENT_NONCE)
            yield ask("sasl_handshake_v1_hmb-scram", SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)[0]
            first, challenge = ask(
                "sasl_authenticate_v2_hmb-scram-first", SaslAuthenticateRequest(auth_bytes=login.first()), 2
            )
            yield first
            proof = login.receive(challenge)
            final, signature = ask("sasl_authenticate_v2_hmb-scram-final", SaslAuthenticateRequest(auth_bytes=proof), 2)
            login.receive(signature)
            assert login.is_complete, "the login is not complete"
            yield final


def main() -> None:
    for name, request, response in exchange():
        api = "SaslHandshake v1" if "handshake" in name else "SaslAuthenticate v2"
        write(FOLDER / f"{name}.txt", f"{api}: request of hmb, response of HMB. The values are those of RFC 7677.",
              request, response)  # fmt: skip


if __name__ == "__main__":
    main()
