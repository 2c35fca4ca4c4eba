"""Reads key stores and trust stores in the binary formats PKCS12 and JKS, and returns their content as PEM text.

Kafka's settings often name a store in the format PKCS12 or JKS, because Java's program `keytool` writes these two
formats. Python's TLS library reads PEM text only, so HMB converts the store each time that it loads the store:
    PKCS12    a standard format (RFC 7292); the program `openssl` converts it
    JKS       Java's own old format; HMB reads it with pyjks, a package from the extra `hmb[jks]`

Other users of the computer can see the arguments of a running program. HMB therefore passes the password to `openssl`
through standard input, and neither the password nor the decrypted key is ever an argument.
"""

from __future__ import annotations

import base64
import importlib
import shutil
import subprocess
import textwrap
from pathlib import Path

KINDS = ("PKCS12", "JKS")
MAGIC = {b"\x30": "PKCS12", b"\xfe\xed\xfe\xed": "JKS"}  # the first bytes of the files
TO_PKCS12 = "keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
# For an old cipher, OpenSSL's error contains this word. HMB then runs OpenSSL again with `-legacy`.
OLD_CIPHER = "unsupported"


class StoreError(ValueError):
    """A key store or a trust store cannot be read.

    `part` is the name of the setting that caused the error, without the prefix `ssl.`. For example, `part` is
    `keystore.password` for the setting `ssl.keystore.password`. The message contains the reason, but no secret.
    """

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(problem)
        self.part = part


def kind_of(start: bytes) -> str | None:
    """Return the format of a file that begins with the bytes `start`: PKCS12, JKS, or None for another format."""
    return next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)


def key_as_pem(path: Path, kind: str, password: str, key_password: str) -> str:
    """Return the private key and its certificates from a key store, as PEM text. Raises StoreError.

    The private key in a JKS store can have its own password, `key_password`.
    """
    if kind == "PKCS12":
        return _from_pkcs12("keystore", path, password)
    return _key_from_jks(path, password, key_password or password)


def certificates_as_pem(path: Path, kind: str, password: str) -> str:
    """Return the certificates of a trust store as PEM text. Raises StoreError."""
    if kind == "PKCS12":
        return _from_pkcs12("truststore", path, password, "-nokeys")
    entries = _jks_store("truststore", path, password).certs.values()
    return "".join(_block("CERTIFICATE", each.cert) for each in entries)


def _from_pkcs12(store: str, path: Path, password: str, *options: str) -> str:
    program = shutil.which("openssl")
    if program is None:
        problem = f"{path} is a PKCS12 store, and the program openssl, which reads it, is not installed"
        raise StoreError(f"{store}.location", f"{problem}; install openssl, or use a PEM store")
    command = [program, "pkcs12", "-in", str(path), "-passin", "stdin", "-nodes", *options]
    result = _run(command, password)
    if result.returncode and OLD_CIPHER in result.stderr:
        result = _run([*command, "-legacy"], password)
    if result.returncode:
        if "password" in result.stderr:
            raise StoreError(f"{store}.password", "the password of the store is wrong")
        reason = (result.stderr.splitlines() or ["no reason"])[0]
        raise StoreError(f"{store}.location", f"the program openssl cannot read {path}: {reason}")
    return result.stdout


def _run(command: list[str], password: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=password + "\n", capture_output=True, text=True, check=False, timeout=30)


def _jks_store(store: str, path: Path, password: str):  # type: ignore[no-untyped-def]  # pyjks has no types.
    try:
        jks = importlib.import_module("jks")
    except ImportError:
        problem = f"{path} is a JKS store; install hmb[jks] to read it, or convert it with"
        raise StoreError(f"{store}.location", f"{problem}: {TO_PKCS12.format(path=path)}") from None
    try:
        return jks.KeyStore.load(str(path), password)
    except jks.util.KeystoreSignatureException:
        raise StoreError(f"{store}.password", "the password of the store is wrong") from None
    except jks.util.KeystoreException as error:
        raise StoreError(f"{store}.location", f"pyjks cannot read {path}: {error}") from None


def _key_from_jks(path: Path, password: str, key_password: str) -> str:
    store = _jks_store("keystore", path, password)
    if not store.private_keys:
        raise StoreError("keystore.location", f"{path} contains no private key")
    entry = next(iter(store.private_keys.values()))
    try:
        if not entry.is_decrypted():
            entry.decrypt(key_password)
    except importlib.import_module("jks").util.DecryptionFailureException:
        raise StoreError("key.password", "the password of the private key in the store is wrong") from None
    certificates = [_block("CERTIFICATE", content) for _, content in entry.cert_chain]
    return "".join([_block("PRIVATE KEY", entry.pkey_pkcs8), *certificates])


def _block(name: str, content: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(content).decode(), 64)
    return "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----", ""])
