"""The security of an embedded broker: `hmb.Broker(users={"alice": "secret"}, tls=True)`.

The users of an embedded broker log in with SCRAM-SHA-256 or SCRAM-SHA-512. For TLS, each broker gets its own
certificate authority and certificates (hmb/security/certificates.py). The certificates are in a temporary
directory, which is deleted with the broker.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from hmb.broker.config.keys import ConfigError
from hmb.broker.security import users
from hmb.broker.security.store import SecurityStore
from hmb.security import scram
from hmb.security.certificates import HOSTS, CertificateError, Certificates, make
from hmb.security.protocols import SecurityProtocol
from hmb.security.scram import ScramMechanism

PROTOCOLS = {
    (False, False): SecurityProtocol.PLAINTEXT,
    (False, True): SecurityProtocol.SSL,
    (True, False): SecurityProtocol.SASL_PLAINTEXT,
    (True, True): SecurityProtocol.SASL_SSL,
}


class Secured:
    """The users and certificates of one embedded broker, and the settings that the broker needs for them."""

    def __init__(self, passwords: Mapping[str, str], host: str, port: int, *, tls: bool) -> None:
        """Create the broker's certificates if `tls` is true. `passwords` contains the password of each user.

        Raises ConfigError if the certificates cannot be created.
        """
        self._passwords = dict(passwords)
        self._protocol = PROTOCOLS[bool(passwords), tls]
        self._address = f"{self._protocol}://{f'[{host}]' if ':' in host else host}:{port}"
        self._directory = tempfile.TemporaryDirectory(prefix="hmb-certificates-") if tls else None
        self._certificates: Certificates | None = None
        if self._directory is not None:
            try:
                self._certificates = make(Path(self._directory.name) / "made", hosts=HOSTS)
            except CertificateError as error:
                raise ConfigError(f"tls=True: {error}") from error

    @property
    def settings(self) -> dict[str, str]:
        """The broker's settings for the users and for TLS."""
        if self._protocol is SecurityProtocol.PLAINTEXT:
            return {}
        found = {"listeners": self._address}
        if self._passwords:
            found["sasl.enabled.mechanisms"] = ",".join(each.sasl_name for each in ScramMechanism)
        if self._certificates is not None:
            found["ssl.keystore.location"] = str(self._certificates.broker)
            found["ssl.truststore.location"] = str(self._certificates.authority)
        return found

    @property
    def client_settings(self) -> dict[str, str]:
        """The settings of a client that logs in as the first user."""
        found = {"security.protocol": str(self._protocol)}
        for name, password in [*self._passwords.items()][:1]:
            found |= {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": name, "sasl.password": password}
        if self._certificates is not None:
            found["ssl.truststore.location"] = str(self._certificates.authority)
        return found

    def add_users(self, store: SecurityStore) -> None:
        """Store the users in a broker that has started."""
        for mechanism in ScramMechanism:
            for name, password in self._passwords.items():
                salt = scram.new_salt()
                salted = scram.salted_password(mechanism, password, salt, scram.DEFAULT_ITERATIONS)
                users.alter(store, [], [users.upserted(name, mechanism, scram.DEFAULT_ITERATIONS, salt, salted)])
