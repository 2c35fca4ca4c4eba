"""Tests of SCRAM: client and broker exchange the messages of RFC 7677's example, and both refuse wrong messages."""

from __future__ import annotations

import pytest

from hmb.broker.security.scram import ScramExchange, ScramState, TokenCredential
from hmb.client.security.scram import ScramLogin
from hmb.security import scram
from hmb.security.scram import ScramCredential, ScramError, ScramMechanism

CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = scram.decoded("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
SERVER_FIRST = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
CLIENT_FINAL = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={PROOF}".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SHA_256 = ScramMechanism.SCRAM_SHA_256


def credential(mechanism: ScramMechanism, password: str) -> ScramCredential:
    return scram.credential_of(mechanism, scram.salted_password(mechanism, password, SALT, 4096), SALT, 4096)


PENCIL = credential(SHA_256, "pencil")


def no_token(mechanism: ScramMechanism, token_id: str) -> TokenCredential:
    raise AssertionError("the client does not log in with a delegation token")


def exchange() -> ScramExchange:
    return ScramExchange(SHA_256, lambda mechanism, name: PENCIL, no_token, lambda: SERVER_NONCE)


def test_both_sides_exchange_the_messages_of_rfc_7677() -> None:
    broker, client = exchange(), ScramLogin("SCRAM-SHA-256", "user", "pencil", lambda: CLIENT_NONCE)
    assert client.first() == CLIENT_FIRST
    assert broker.receive(CLIENT_FIRST) == SERVER_FIRST
    assert client.receive(SERVER_FIRST) == CLIENT_FINAL
    assert broker.receive(CLIENT_FINAL) == SERVER_FINAL
    client.receive(SERVER_FINAL)
    assert broker.is_complete and broker.user == "user" and client.is_complete


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("name", ["a,b", "x=y", "=2C", "ä"])
def test_a_name_with_special_characters_is_exchanged(mechanism: ScramMechanism, name: str) -> None:
    stored = credential(mechanism, "pässword")
    broker = ScramExchange(mechanism, lambda kind, user: stored, no_token)
    client = ScramLogin(mechanism.sasl_name, name, "pässword")
    message = client.first()
    while not client.is_complete:
        message = client.receive(broker.receive(message))
    assert broker.user == name


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff",
        b"n,,n=user",
        b"n,,r=abc",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=admin,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,m=x,n=user,r=abc",
        b"n,,n=user,r=" + b"\x00",
    ],
)
def test_a_wrong_first_message_is_refused(first: bytes) -> None:
    broker = exchange()
    with pytest.raises(ScramError):
        broker.receive(first)
    assert broker.state is ScramState.REFUSED
    assert not broker.is_complete


OTHER_PROOF = scram.encoded(bytes(32))


@pytest.mark.parametrize(
    "final",
    [
        f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={OTHER_PROOF}",
        f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={scram.encoded(bytes(31))}",
        f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=AAAAA",
        f"c=biws,r={CLIENT_NONCE},p={PROOF}",
        f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE}x,p={PROOF}",
        f"c=biws,r=x{CLIENT_NONCE}{SERVER_NONCE},p={PROOF}",
        f"c=eSws,r={CLIENT_NONCE}{SERVER_NONCE},p={PROOF}",
        f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE}",
        f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=",
        "",
    ],
)
def test_a_wrong_final_message_is_refused(final: str) -> None:
    broker = exchange()
    broker.receive(CLIENT_FIRST)
    with pytest.raises(ScramError):
        broker.receive(final.encode())
    assert broker.state is ScramState.REFUSED
    with pytest.raises(AssertionError):
        broker.receive(CLIENT_FINAL)


@pytest.mark.parametrize("cut", range(len(CLIENT_FINAL)))
def test_a_final_message_that_is_cut_off_is_refused(cut: int) -> None:
    broker = exchange()
    broker.receive(CLIENT_FIRST)
    with pytest.raises(ScramError):
        broker.receive(CLIENT_FINAL[:cut])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (f"r={CLIENT_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(), "nonce"),
        (f"r={CLIENT_NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1".encode(), "iterations"),
        (f"r={CLIENT_NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999".encode(), "iterations"),
        (b"e=unknown-user", "malformed"),
    ],
)
def test_a_client_refuses_a_wrong_broker(message: bytes, reason: str) -> None:
    client = ScramLogin("SCRAM-SHA-256", "user", "pencil", lambda: CLIENT_NONCE)
    with pytest.raises(ScramError, match=reason):
        client.receive(message)


def test_a_client_refuses_a_broker_that_does_not_know_the_user() -> None:
    client = ScramLogin("SCRAM-SHA-256", "user", "pencil", lambda: CLIENT_NONCE)
    client.receive(SERVER_FIRST)
    with pytest.raises(ScramError, match="does not prove"):
        client.receive(b"v=" + scram.encoded(bytes(32)).encode())


def test_repr_shows_no_secret() -> None:
    assert "4096" in repr(PENCIL)
    assert repr(PENCIL.stored_key) not in repr(PENCIL)
