"""Brokers with three listeners: without security, with TLS, and with a login over SCRAM.

HMB's listeners and Kafka's listeners get the same settings. This is possible because HMB's settings have the names and
values of Kafka's settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hmb.client import Admin
from hmb.security.certificates import CertificateError, Certificates, make

from ..peers import HOST, PeerUnavailable, free_ports
from ..peers.chosen import MeasuredBroker, broker_kinds

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")
MECHANISM = "SCRAM-SHA-256"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER, PASSWORD = "alice", "alice-secret"


@dataclass(frozen=True)
class SecuredBroker:
    """A running broker with three listeners, and the file with the certificate that its TLS clients must trust."""

    plain: MeasuredBroker  # the broker; `plain.bootstrap` is the address of its PLAINTEXT listener
    tls: str  # HOST:PORT of the listener with TLS
    login: str  # HOST:PORT of the listener that requires a login
    authority: Path

    @property
    def name(self) -> str:
        return self.plain.name


def start_brokers(stack: ExitStack) -> list[SecuredBroker]:
    """Start HMB, and Kafka 4.3.0 if its jars are installed. The brokers run until `stack` closes.

    Raises PeerUnavailable if the program openssl is missing, and PeerFailed if a broker does not start.
    """
    directory = stack.enter_context(TemporaryDirectory(prefix="hmb-bench-certificates-"))
    try:
        certificates = make(Path(directory) / "made")
    except CertificateError as error:
        raise PeerUnavailable(str(error)) from error
    brokers = []
    for kind in broker_kinds():
        ports = free_ports(len(PROTOCOLS))
        peer = stack.enter_context(kind.make(port=ports[0], config=_settings(ports, certificates)))
        with Admin(peer.bootstrap) as admin:
            admin.set_password(USER, PASSWORD, [MECHANISM])
        tls, login = (f"{HOST}:{port}" for port in ports[1:])
        brokers.append(SecuredBroker(MeasuredBroker.of(peer), tls, login, certificates.authority))
    return brokers


def _settings(ports: Sequence[int], certificates: Certificates) -> dict[str, str]:
    listeners = [f"{protocol}://{HOST}:{port}" for protocol, port in zip(PROTOCOLS, ports, strict=True)]
    protocols = [f"{protocol}:{protocol}" for protocol in PROTOCOLS]
    return {
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker),
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.sasl_plaintext.{MECHANISM.lower()}.sasl.jaas.config": f"{LOGIN_MODULE} required;",
    }
