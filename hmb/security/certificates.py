"""Makes certificates for tests: a private authority signs one certificate for a broker and one for a client.

A client trusts a broker's certificate if an authority in the client's trust store has signed the certificate.
For a test or a course, a private authority is enough. `make` creates such an authority, and writes these
files:
    authority.pem     the authority's certificate: the trust store of broker and clients
    authority.key     the authority's private key; a thief could sign more certificates with this key
    broker.pem        the broker's key store: a private key, and a certificate for localhost, 127.0.0.1 and ::1
    client.pem        a client's key store: a private key, and a certificate with the name CN=client

The program `openssl` makes the keys and signs the certificates. Almost every system has this program, and Python's
standard library cannot sign a certificate.
"""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import HmbError

AUTHORITY, AUTHORITY_KEY, BROKER, CLIENT = "authority.pem", "authority.key", "broker.pem", "client.pem"
DAYS = 365
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
HOSTS = ("localhost", "127.0.0.1", "::1")


class CertificateError(HmbError):
    """The certificates could not be made. The message contains the reason."""


class Certificates(NamedTuple):
    """The paths of the files that `make` has written."""

    authority: Path
    broker: Path
    client: Path


def make(directory: Path, hosts: Sequence[str] = HOSTS, *, client: str = "client", days: int = DAYS) -> Certificates:
    """Create a certificate authority, and certificates for a broker and a client, in `directory`.

    `hosts` contains the broker's names and addresses, and `client` is the client's name. The certificates are valid
    for `days` days. Raises CertificateError, for example if `directory` already contains an authority.
    """
    if shutil.which("openssl") is None:
        raise CertificateError("the program openssl is not installed; install it, for example with apt install openssl")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if existing := [name for name in (AUTHORITY, AUTHORITY_KEY, BROKER, CLIENT) if (directory / name).exists()]:
            problem = f"{directory} contains {', '.join(existing)} already"
            raise CertificateError(f"{problem}; choose another directory, or remove the files")
        _make_authority(directory, days)
        names = ",".join(f"{_kind_of(host)}:{host}" for host in hosts)
        _sign(directory, BROKER, hosts[0], f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n", days)
        _sign(directory, CLIENT, client, "extendedKeyUsage=clientAuth\n", days)
    except OSError as error:
        raise CertificateError(f"cannot write the certificates to {directory}: {error.strerror}") from error
    return Certificates(directory / AUTHORITY, directory / BROKER, directory / CLIENT)


def _make_authority(directory: Path, days: int) -> None:
    _secret_file(directory / AUTHORITY_KEY)
    _openssl(
        directory,
        *("req", "-x509", *NEW_KEY, "-keyout", AUTHORITY_KEY, "-out", AUTHORITY, "-days", str(days)),
        *("-subj", "/CN=HMB private authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
    )


def _sign(directory: Path, name: str, common_name: str, extensions: str, days: int) -> None:
    """Make a key and a certificate for the owner `common_name`, and write both into the file `name`."""
    key, request, certificate, extension_file = (directory / f"{name}.{part}" for part in ("key", "req", "crt", "ext"))
    try:
        _secret_file(key)
        _openssl(
            directory,
            *("req", *NEW_KEY, "-keyout", key.name, "-out", request.name, "-subj", f"/CN={_escaped(common_name)}"),
        )
        extension_file.write_text(extensions, encoding="utf-8")
        _openssl(
            directory,
            *("x509", "-req", "-in", request.name, "-CA", AUTHORITY, "-CAkey", AUTHORITY_KEY, "-CAcreateserial"),
            *("-days", str(days), "-extfile", extension_file.name, "-out", certificate.name),
        )
        _secret_file(directory / name)
        (directory / name).write_bytes(key.read_bytes() + certificate.read_bytes())
    finally:
        for path in (key, request, certificate, extension_file, *directory.glob("*.srl")):
            path.unlink(missing_ok=True)


def _secret_file(path: Path) -> None:
    path.touch(mode=0o600)


def _kind_of(host: str) -> str:
    """Return the kind of a name in a certificate: IP for an address, and DNS for a host name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "DNS"
    return "IP"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")


def _openssl(directory: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it printed no reason")
        raise CertificateError(f"openssl {arguments[0]} failed: {last}")
