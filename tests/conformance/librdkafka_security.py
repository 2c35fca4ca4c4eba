"""Listeners with TLS or a login for librdkafka's tests, and the client settings for these listeners.

Most tests use a listener without security. The tests in `PROTOCOLS` need a listener with TLS or with a login. Without
this listener, librdkafka skips these tests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from hmb.bench.peers import HOST, free_ports
from hmb.client import Admin
from hmb.security.certificates import make

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")
PROTOCOLS = {"0097": "SSL", "0135": "SASL_PLAINTEXT"}
MECHANISM, USER, PASSWORD = "SCRAM-SHA-256", "alice", "alice-secret"
KEY_PASSWORD = "key-secret"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


class SecuredListeners:
    """Three listeners on free ports, and the certificates for one of them."""

    def __init__(self, directory: Path) -> None:
        """Make the certificates in `directory`. Raises CertificateError."""
        self._certificates = make(directory / "certificates")
        self._ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))

    @property
    def port(self) -> int:
        """The port of the listener without security."""
        return self._ports["PLAINTEXT"]

    @property
    def config(self) -> dict[str, str]:
        """The settings of the broker."""
        protocols = [f"{each}:{each}" for each in LISTENERS]
        return {
            "listeners": ",".join(f"{protocol}://{HOST}:{port}" for protocol, port in self._ports.items()),
            "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificates.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._certificates.authority),
            "ssl.client.auth": "required",
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.sasl_plaintext.{MECHANISM.lower()}.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        }

    def create_user(self) -> None:
        with Admin(f"{HOST}:{self.port}") as admin:
            admin.set_password(USER, PASSWORD, [MECHANISM])

    def client_settings(self, test: str) -> dict[str, str]:
        """Return the settings of librdkafka for a test, with the address of the listener that the test needs."""
        protocol = PROTOCOLS.get(test, "PLAINTEXT")
        settings = {"metadata.broker.list": f"{HOST}:{self._ports[protocol]}"}
        if protocol == "SSL":
            settings["ssl.ca.location"] = str(self._certificates.authority)
            settings["ssl.key.location"] = settings["ssl.certificate.location"] = str(self._certificates.client)
            settings["ssl.key.password"] = KEY_PASSWORD
        elif protocol == "SASL_PLAINTEXT":
            settings |= {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD}
        return {**settings, "security.protocol": protocol.lower()}

    def environment(self, test: str) -> dict[str, str]:
        """Return the variables that name the client's key and certificates in several formats, if a test needs them."""
        if PROTOCOLS.get(test) != "SSL":
            return {}
        authority, client = self._certificates.authority, self._certificates.client
        files = {
            "SSL_pkcs": client.with_suffix(".p12"),
            "SSL_pub_der": client.with_suffix(".der"),
            "SSL_priv_der": client.with_suffix(".key.der"),
            "SSL_ca_der": authority.with_suffix(".der"),
        }
        for arguments in self._conversions(files):
            subprocess.run(["openssl", *arguments], check=True, capture_output=True)
        pem = {"SSL_pub_pem": client, "SSL_priv_pem": client, "SSL_all_cas_pem": authority}
        return {name: str(path) for name, path in (files | pem).items()} | {"SSL_password": KEY_PASSWORD}

    def _conversions(self, files: dict[str, Path]) -> Iterator[list[str]]:
        """Yield the arguments of each openssl command that converts a certificate or a key to another format."""
        authority, client = str(self._certificates.authority), str(self._certificates.client)
        export = ["pkcs12", "-export", "-in", client, "-certfile", authority, "-passout", f"pass:{KEY_PASSWORD}"]
        yield [*export, "-out", str(files["SSL_pkcs"])]
        yield ["x509", "-in", client, "-outform", "DER", "-out", str(files["SSL_pub_der"])]
        yield ["pkey", "-in", client, "-outform", "DER", "-out", str(files["SSL_priv_der"])]
        yield ["x509", "-in", authority, "-outform", "DER", "-out", str(files["SSL_ca_der"])]
