"""The golden files of a login with SCRAM contain the bytes that client and broker exchange today."""

from __future__ import annotations

from tests.golden.files import load
from tests.golden.scram_exchange import FOLDER, exchange


def test_client_and_broker_exchange_the_bytes_of_the_golden_files() -> None:
    recorded = list(exchange())
    assert [each.name.partition("_v")[0] for each in recorded] == ["sasl_handshake", *["sasl_authenticate"] * 2]
    for name, request, response in recorded:
        sides = load(FOLDER / f"{name}.txt")
        assert (sides["request"].wire, sides["response"].wire) == (request, response)


def test_the_messages_are_those_of_rfc_7677() -> None:
    first, final = (load(FOLDER / f"sasl_authenticate_v2_hmb-scram-{part}.txt") for part in ("first", "final"))
    nonce = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert first["request"].message.auth_bytes == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert first["response"].message.auth_bytes == nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert final["request"].message.auth_bytes == b"c=biws," + nonce + b"," + proof
    assert final["response"].message.auth_bytes == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
