"""Tests of PKCS12 and JKS stores: brokers and clients read them, and report a wrong store or password clearly."""

from __future__ import annotations

import base64
import importlib
import subprocess
from pathlib import Path

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.broker.config.keys import ConfigError
from hmb.client.security.settings import SecuritySettingError, client_security
from hmb.security.certificates import Certificates, make
from hmb.security.stores import BLOCK

PASSWORD = "store-secret"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates") / "made")


def pkcs12(source: Path, target: Path, *options: str) -> Path:
    command = ["openssl", "pkcs12", "-export", "-in", str(source), "-out", str(target), "-passout", f"pass:{PASSWORD}"]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return target


def blocks(path: Path) -> dict[str, bytes]:
    """Return the contents of the blocks in a PEM file, by their names."""
    return {name: base64.b64decode("".join(body.split())) for name, body in BLOCK.findall(path.read_text())}


def broker_settings(key: Path, trust: Path, type: str) -> dict[str, str]:
    return {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.client.auth": "required",
        "ssl.keystore.location": str(key),
        "ssl.keystore.type": type,
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.type": type,
        "ssl.truststore.password": PASSWORD,
    }


def client_settings(key: Path, trust: Path) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.keystore.location": str(key),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
    }


@pytest.mark.parametrize("cipher", [[], ["-legacy"]], ids=["modern", "legacy"])
def test_pkcs12_stores_of_broker_and_client(certificates: Certificates, tmp_path: Path, cipher: list[str]) -> None:
    """Brokers and clients use PKCS12 stores with modern ciphers and with RC2.

    Java before version 16 wrote stores with RC2. OpenSSL 3 reads this cipher only with its legacy provider.
    """
    key = pkcs12(certificates.broker, tmp_path / "broker.p12", *cipher)
    trust = pkcs12(certificates.authority, tmp_path / "trust.p12", "-nokeys", *cipher)
    client_key = pkcs12(certificates.client, tmp_path / "client.p12", *cipher)
    client, settings = client_settings(client_key, trust), broker_settings(key, trust, "PKCS12")
    with hmb.Broker(config=settings) as broker, hmb.Admin(broker.bootstrap_servers, security=client) as admin:
        assert admin.list_topics() == []
        assert {client.principal for _, client in broker._server.clients()} == {"User:CN=client"}


def test_jks_stores_of_broker_and_client(certificates: Certificates, tmp_path: Path) -> None:
    jks = pytest.importorskip("jks", reason="pip install hmb[jks]")
    key, trust = tmp_path / "broker.jks", tmp_path / "trust.jks"
    own = blocks(certificates.broker)
    entry = jks.PrivateKeyEntry.new("broker", [own["CERTIFICATE"]], own["PRIVATE KEY"], "pkcs8")
    entry.encrypt("key-secret")
    jks.KeyStore.new("jks", [entry]).save(str(key), PASSWORD)
    certificate = jks.TrustedCertEntry.new("ca", blocks(certificates.authority)["CERTIFICATE"])
    jks.KeyStore.new("jks", [certificate]).save(str(trust), PASSWORD)
    settings = broker_settings(key, trust, "JKS") | {"ssl.key.password": "key-secret", "ssl.client.auth": "none"}
    client = client_settings(key, trust) | {"ssl.key.password": "key-secret"}
    with hmb.Broker(config=settings) as broker, hmb.Admin(broker.bootstrap_servers, security=client) as admin:
        assert admin.list_topics() == []
    for name in ("ssl.keystore.password", "ssl.key.password", "ssl.truststore.password"):
        with pytest.raises(SecuritySettingError, match=rf"{name}=\[hidden\]: the password of the .*store is wrong"):
            client_security(client | {name: "guess"})


def test_a_wrong_password_is_named_and_hidden(certificates: Certificates, tmp_path: Path) -> None:
    key = pkcs12(certificates.broker, tmp_path / "broker.p12")
    settings = broker_settings(key, certificates.authority, "PKCS12") | {"ssl.truststore.type": "PEM"}
    with pytest.raises(ConfigError, match=r"ssl.keystore.password=.*the password of the store is wrong") as caught:
        BrokerServer(config=settings | {"ssl.keystore.password": "guessed-word"})
    assert "guessed-word" not in str(caught.value)
    with pytest.raises(SecuritySettingError, match=r"ssl.truststore.password=.*the password of the store is wrong"):
        client_security({"security.protocol": "SSL", "ssl.truststore.location": str(key)})


def test_a_damaged_store_and_a_wrong_type_are_named(certificates: Certificates, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.p12"
    damaged.write_bytes(b"\x30\x82rubbish")
    with pytest.raises(ConfigError, match=r"ssl.keystore.location=.*openssl cannot read .*damaged\.p12"):
        BrokerServer(config=broker_settings(damaged, certificates.authority, "PKCS12"))
    with pytest.raises(ConfigError, match=r"ssl.keystore.type=.*broker\.pem is not a PKCS12 store"):
        BrokerServer(config=broker_settings(certificates.broker, certificates.authority, "PKCS12"))


def test_without_pyjks_the_error_names_the_command_that_converts(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    store = tmp_path / "broker.jks"
    store.write_bytes(bytes.fromhex("feedfeed 00000002"))
    monkeypatch.setattr(importlib, "import_module", missing)
    convert = rf"install hmb\[jks\] to read it, or convert it with: keytool -importkeystore -srckeystore {store}"
    with pytest.raises(ConfigError, match=convert):
        BrokerServer(config=broker_settings(store, certificates.authority, "JKS"))
