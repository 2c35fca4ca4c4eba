"""Key stores and trust stores: the keys and certificates that a TLS context needs.

Kafka has two kinds of stores. A *key store* contains a private key, and certificates for this key: they prove
who owns the key. A *trust store* contains the certificates of the authorities that a broker or a client trusts.

A PEM store is a text file. Each key or certificate is a block of base64 text between two lines, such as
`-----BEGIN CERTIFICATE-----` and `-----END CERTIFICATE-----`. Instead of the name of a file, a setting can
contain the PEM text itself.

A store can also have a binary format: PKCS12 or JKS. Python's standard library cannot read these formats, so
the module `binary_stores.py` converts such a store to PEM text. HMB recognizes a binary format from the first
bytes of the file. It therefore reads the file even if the type of the store is wrong or missing in the
settings.

Source: KIP-651 (PEM stores), KIP-684.
"""

from __future__ import annotations

import re
import ssl
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hmb.protocol.errors import HmbError
from hmb.security import binary_stores
from hmb.security.binary_stores import StoreError

MINIMUM = ssl.TLSVersion.TLSv1_2
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----(.*?)-----END \1-----", re.DOTALL)


class TlsSettingError(HmbError):
    """The error for a wrong setting of TLS. `setting` is Kafka's name of the setting."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting, self.problem = setting, problem


@dataclass(frozen=True)
class TlsSettings:
    """The settings `ssl.*` of one listener or of one client. The fields are named after Kafka's settings.

    `repr` does not show the fields that contain secrets.
    """

    keystore_location: str = ""
    keystore_type: str = ""
    keystore_password: str = field(default="", repr=False)
    keystore_key: str = field(default="", repr=False)
    keystore_certificate_chain: str = ""
    key_password: str = field(default="", repr=False)
    truststore_location: str = ""
    truststore_type: str = ""
    truststore_password: str = field(default="", repr=False)
    truststore_certificates: str = ""
    enabled_protocols: str = ",".join(VERSIONS)
    cipher_suites: str = ""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TlsSettings:
        """Make the settings from properties with Kafka's names. For example, `ssl.key.password` sets `key_password`."""
        names = {name: f"ssl.{name.replace('_', '.')}" for name in cls.__dataclass_fields__}
        return cls(**{name: properties[kafka] for name, kafka in names.items() if properties.get(kafka)})

    @property
    def has_key(self) -> bool:
        return bool(self.keystore_location or self.keystore_key)

    @property
    def has_trust(self) -> bool:
        return bool(self.truststore_location or self.truststore_certificates)

    @property
    def files(self) -> list[Path]:
        """The files of the key store and of the trust store."""
        return [Path(each) for each in (self.keystore_location, self.truststore_location) if each]

    def apply(self, context: ssl.SSLContext) -> None:
        """Set the key, the trusted certificates, the versions and the ciphers of a context. Raises TlsSettingError."""
        self._set_versions(context)
        if self.cipher_suites:
            self._set_ciphers(context)
        if self.has_key:
            self._load_key(context)
        if self.has_trust:
            self._load_trust(context)

    def _set_versions(self, context: ssl.SSLContext) -> None:
        names = [name.strip() for name in self.enabled_protocols.split(",")]
        if unknown := [name for name in names if name not in VERSIONS]:
            allowed = f"only {' and '.join(VERSIONS)} are allowed, because older versions are insecure"
            raise TlsSettingError("ssl.enabled.protocols", f"{', '.join(unknown)} cannot be enabled: {allowed}")
        versions = [VERSIONS[name] for name in names]
        context.minimum_version, context.maximum_version = min(versions), max(versions)

    def _set_ciphers(self, context: ssl.SSLContext) -> None:
        """Allow only the TLS 1.2 ciphers in `ssl.cipher.suites`. OpenSSL chooses the TLS 1.3 ciphers itself."""
        names = [name.strip() for name in self.cipher_suites.split(",")]
        try:
            context.set_ciphers(":".join(_openssl_name(name) for name in names if not name.startswith("TLS_AES")))
        except ssl.SSLError:
            raise TlsSettingError("ssl.cipher.suites", f"OpenSSL knows none of {self.cipher_suites}") from None

    def _load_key(self, context: ssl.SSLContext) -> None:
        if self.keystore_location and self.keystore_key:
            raise TlsSettingError("ssl.keystore.key", "is set together with ssl.keystore.location; remove one of them")
        if self.keystore_key and not self.keystore_certificate_chain:
            raise TlsSettingError("ssl.keystore.certificate.chain", "is missing, but ssl.keystore.key is set")

        def load(path: Path) -> None:
            # If the user sets no password, `key_password` is empty. For an encrypted key, OpenSSL then raises an error.
            # With None, OpenSSL would wait for a password from the terminal.
            context.load_cert_chain(path, password=self.key_password)

        if self.keystore_location:
            path, kind = _store_file("ssl.keystore", self.keystore_location, self.keystore_type)
            if kind in binary_stores.KINDS:
                text = _converted(
                    lambda: binary_stores.key_as_pem(path, kind, self.keystore_password, self.key_password)
                )
                _loaded("ssl.keystore.location", lambda: _with_file(text, context.load_cert_chain))
            else:
                _loaded("ssl.keystore.location", lambda: load(path))
        else:
            check_pem_type("ssl.keystore.type", self.keystore_type)
            text = f"{_lines(self.keystore_key)}\n{_lines(self.keystore_certificate_chain)}\n"
            _loaded("ssl.keystore.key", lambda: _with_file(text, load))

    def _load_trust(self, context: ssl.SSLContext) -> None:
        if self.truststore_location and self.truststore_certificates:
            problem = "is set together with ssl.truststore.location; remove one of them"
            raise TlsSettingError("ssl.truststore.certificates", problem)
        if self.truststore_location:
            path, kind = _store_file("ssl.truststore", self.truststore_location, self.truststore_type)
            if kind in binary_stores.KINDS:
                text = _converted(lambda: binary_stores.certificates_as_pem(path, kind, self.truststore_password))
                _loaded("ssl.truststore.location", lambda: context.load_verify_locations(cadata=_lines(text)))
            else:
                _loaded("ssl.truststore.location", lambda: context.load_verify_locations(path))
        else:
            check_pem_type("ssl.truststore.type", self.truststore_type)
            certificates = _lines(self.truststore_certificates)
            _loaded("ssl.truststore.certificates", lambda: context.load_verify_locations(cadata=certificates))


def check_pem_type(setting: str, type: str) -> None:
    """Raise TlsSettingError if a store's `type` is neither empty nor PEM.

    The text of the store is in a setting, not in a file, so this text must be PEM. The argument `setting` is the
    name of the setting that contains `type`, such as `ssl.keystore.type`.
    """
    if type.upper() not in ("", "PEM"):
        raise TlsSettingError(
            setting, f"the value must be PEM, not {type}, because another setting contains the text of the store"
        )


def _store_file(store: str, location: str, type: str) -> tuple[Path, str]:
    """Return the path and the format of a store's file. The format is PEM, PKCS12 or JKS.

    Raises TlsSettingError if the file is unreadable or `type` is unknown. Also raises it if `type` is PKCS12 or
    JKS, but the file has neither format.
    """
    path, setting = Path(location), f"{store}.location"
    try:
        start = path.read_bytes()[:4]
    except OSError as error:
        raise TlsSettingError(setting, f"cannot read {path}: {error.strerror}") from None
    kind = binary_stores.kind_of(start) or "PEM"
    if kind == "PEM" and type.upper() in binary_stores.KINDS:
        raise TlsSettingError(f"{store}.type", f"{type}: {path} is not a {type.upper()} store")
    if type.upper() not in ("", "PEM", *binary_stores.KINDS):
        raise TlsSettingError(f"{store}.type", f"{type}: HMB reads the types PEM, PKCS12 and JKS")
    return path, kind


def _converted(convert: Callable[[], str]) -> str:
    """Return the PEM text from `convert`, which reads a binary store. Turn a StoreError into a TlsSettingError."""
    try:
        return convert()
    except StoreError as error:
        raise TlsSettingError(f"ssl.{error.part}", str(error)) from None


def _loaded(setting: str, load: Callable[[], object]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # ssl.SSLError is a kind of OSError.
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it contains no valid PEM text"
        known = REASONS.get(str(reason), str(reason))
        raise TlsSettingError(setting, f"OpenSSL cannot use it: {known}") from None


REASONS = {
    "KEY_VALUES_MISMATCH": "the private key does not belong to the first certificate",
    "BAD_DECRYPT": "ssl.key.password is wrong",
    "BAD_PASSWORD_READ": "the private key is encrypted, and ssl.key.password is not set",
    "PEM_LIB": "a private key or a certificate is missing, or the password is wrong",
}


def _with_file(text: str, use: Callable[[Path], None]) -> None:
    """Call `use` with the path of a temporary file that contains `text`. Python can load a key only from a file.

    Only the owner of the process can read the file. The file is deleted at the end.
    """
    with tempfile.TemporaryDirectory(prefix="hmb-key-") as directory:
        path = Path(directory) / "key.pem"
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        use(path)


def _lines(text: str) -> str:
    r"""Return a PEM text with the line ends that OpenSSL expects: base64 text in lines of 64 characters.

    In a properties file, a PEM text is often a single line. Its line ends are then missing, or replaced by spaces.
    """
    return "\n".join(
        "\n".join([f"-----BEGIN {name}-----", *textwrap.wrap("".join(body.split()), 64), f"-----END {name}-----"])
        for name, body in BLOCK.findall(text)
    )


def _openssl_name(java_name: str) -> str:
    """Return OpenSSL's name of a cipher suite.

    For example, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256 in OpenSSL.
    """
    name = java_name.removeprefix("TLS_").replace("_CBC", "").replace("AES_", "AES")
    name = name.replace("POLY1305_SHA256", "POLY1305").replace("_WITH_", "_").removeprefix("RSA_")
    return name.replace("_", "-")
