"""Certificates and brokers for the tests of security."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

import hmb
from hmb.broker.security.store import QuotaEntity
from hmb.security.certificates import Certificates, make
from tests.broker.conftest import Wire


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates") / "made")


def tls_settings(certificates: Certificates, protocol: str = "SSL", **others: str) -> dict[str, str]:
    """Return the settings of a broker with one TLS listener. In the names of `others`, `_` stands for a dot."""
    own = {
        "listeners": f"{protocol}://127.0.0.1:0",
        "ssl.keystore.location": str(certificates.broker),
        "ssl.truststore.location": str(certificates.authority),
    }
    return own | {name.replace("_", "."): value for name, value in others.items()}


def client_context(certificates: Certificates, key: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates.authority))
    if key is not None:
        context.load_cert_chain(key)
    return context


def connect_plain(broker: hmb.Broker, listener: int = 0) -> socket.socket:
    bound = broker.listeners[listener]
    return socket.create_connection((bound.host, bound.port), timeout=10)


def connect_tls(broker: hmb.Broker, certificates: Certificates, key: Path | None = None, listener: int = 0) -> Wire:
    context = client_context(certificates, key)
    return Wire(context.wrap_socket(connect_plain(broker, listener), server_hostname="localhost"))


Settings = Mapping[str, str]


def entity(**names: str | None) -> QuotaEntity:
    """Return a quota entity. Each keyword is an entity type. The keyword of the type `client-id` is `client_id`."""
    return frozenset((type.replace("_", "-"), name) for type, name in names.items())
