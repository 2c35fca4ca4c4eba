"""The security of a client: which protocol it uses, which certificates it trusts, and its name and password.

The settings of TLS and SASL have Kafka's names. For some settings, HMB also accepts the names of librdkafka:
    security.protocol=SASL_SSL                    other values: PLAINTEXT, SSL, SASL_PLAINTEXT
    ssl.truststore.location=authority.pem         librdkafka's name: ssl.ca.location
    sasl.mechanism=SCRAM-SHA-256                  other values: PLAIN, SCRAM-SHA-512, OAUTHBEARER
                                                  librdkafka's name: sasl.mechanisms
The name and the password of a user can be written as one setting of Kafka, or as two settings of librdkafka:
    sasl.jaas.config=...ScramLoginModule required username="alice" password="alice-secret";
    sasl.username=alice
    sasl.password=alice-secret

If the setting `sasl.jaas.config` contains `tokenauth="true"`, the client logs in with a delegation token. The username
is then the id of the token, and the password is the HMAC of the token. The module `oauth.py` lists the settings of the
mechanism OAUTHBEARER.

A program passes the settings of TLS and SASL as a dict: `hmb.Producer(servers, security={"security.protocol": "SSL",
...})`.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hmb.client.security import oauth
from hmb.client.security.oauth import TokenSource
from hmb.client.security.tls import new_context
from hmb.protocol.errors import HmbError
from hmb.security import web_addresses
from hmb.security.protocols import HIDDEN, NO_KERBEROS, OAUTH_MECHANISM, PLAIN_MECHANISM, SecurityProtocol
from hmb.security.scram import SCRAM_MECHANISMS
from hmb.security.stores import TlsSettingError, TlsSettings

MECHANISMS = (PLAIN_MECHANISM, *SCRAM_MECHANISMS, OAUTH_MECHANISM)
OTHER_NAMES = {"ssl.ca.location": "ssl.truststore.location", "sasl.mechanisms": "sasl.mechanism"}
TLS_NAMES = [f"ssl.{name.replace('_', '.')}" for name in TlsSettings.__dataclass_fields__]
NAMES = [
    "security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.username", "sasl.password",
    "ssl.endpoint.identification.algorithm", "ssl.protocol",
    *TLS_NAMES, *OTHER_NAMES, *oauth.NAMES,
]  # fmt: skip
SECRETS = {
    "sasl.jaas.config", "sasl.password", "ssl.keystore.key", "ssl.key.password", "ssl.keystore.password",
    "ssl.truststore.password", *oauth.SECRETS,
}  # fmt: skip
JAAS_OPTION = re.compile(
    r"""\b(username|password|tokenauth)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))"""
)


class SecuritySettingError(HmbError, ValueError):
    """A setting of TLS or SASL is wrong. The message does not contain secrets."""

    def __init__(self, name: str, value: str, problem: str) -> None:
        shown = HIDDEN if name in SECRETS else value
        super().__init__(f"{name}={shown}: {problem}")
        self.name, self.shown, self.problem = name, shown, problem


@dataclass(frozen=True)
class ClientSecurity:
    """A client's settings for encryption and authentication. `repr` does not show the password."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    context: ssl.SSLContext | None = None
    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    is_token: bool = False  # whether the name is the id of a delegation token
    token: TokenSource | None = field(default=None, repr=False)  # returns a token for OAUTHBEARER


SecuritySettings: TypeAlias = Mapping[str, str] | Mapping[str, str | TokenSource]
NO_SECURITY = ClientSecurity()


def client_security(given: SecuritySettings | ClientSecurity | None) -> ClientSecurity:
    """Convert settings of TLS and SASL to a `ClientSecurity`. Raises SecuritySettingError."""
    if given is None:
        return NO_SECURITY
    if isinstance(given, ClientSecurity):
        return given
    if unknown := [name for name in given if name not in NAMES]:
        raise SecuritySettingError(unknown[0], HIDDEN, "HMB's clients have no TLS or SASL setting with this name")
    values = {OTHER_NAMES.get(name, name): value for name, value in given.items() if isinstance(value, str)}
    name = values.get("security.protocol", "PLAINTEXT").upper()
    if name not in SecurityProtocol.__members__:
        raise SecuritySettingError("security.protocol", name, f"the value must be one of {', '.join(SecurityProtocol)}")
    protocol = SecurityProtocol(name)
    context = _context_of(values) if protocol.has_tls else None
    if not protocol.has_sasl:
        return ClientSecurity(protocol, context)
    mechanism = _mechanism_of(values)
    if mechanism == OAUTH_MECHANISM:
        return ClientSecurity(protocol, context, mechanism, token=_token_source(given.get(oauth.TOKEN), values))
    return ClientSecurity(protocol, context, mechanism, *_name_and_password(values))


def _context_of(values: Mapping[str, str]) -> ssl.SSLContext:
    checks_name = values.get("ssl.endpoint.identification.algorithm", "https").lower()
    if checks_name not in ("https", "", "none"):
        problem = "the value must be https, or empty to accept a certificate with another host name"
        raise SecuritySettingError("ssl.endpoint.identification.algorithm", checks_name, problem)
    try:
        return new_context(TlsSettings.from_properties(values), checks_host=checks_name == "https")
    except TlsSettingError as error:
        raise SecuritySettingError(error.setting, values.get(error.setting, ""), error.problem) from error


def _mechanism_of(values: Mapping[str, str]) -> str:
    mechanism = values.get("sasl.mechanism", "").upper()
    if mechanism not in MECHANISMS:
        problem = f"the value must be one of {', '.join(MECHANISMS)}"
        if mechanism == "GSSAPI":
            problem += NO_KERBEROS
        raise SecuritySettingError("sasl.mechanism", mechanism, problem)
    return mechanism


def _token_source(given: str | TokenSource | None, values: Mapping[str, str]) -> TokenSource:
    source = oauth.token_source(given, values)
    if source is None:
        raise SecuritySettingError(oauth.TOKEN, "", f"is missing; set it to a token, or set {oauth.ENDPOINT}")
    address = values.get(oauth.ENDPOINT, "")
    if address and not web_addresses.is_safe(address):
        raise SecuritySettingError(oauth.ENDPOINT, address, web_addresses.PROBLEM)
    return source


def _name_and_password(values: Mapping[str, str]) -> tuple[str, str, bool]:
    """Return the username, the password, and whether the client logs in with a delegation token.

    For a delegation token, the username is the id of the token, and the password is its HMAC. Raises
    SecuritySettingError if the username or the password is missing.
    """
    found = {name: values[f"sasl.{name}"] for name in ("username", "password") if f"sasl.{name}" in values}
    for name, *texts in JAAS_OPTION.findall(values.get("sasl.jaas.config", "")):
        found.setdefault(name, re.sub(r"\\(.)", r"\1", "".join(texts)))
    for name in ("username", "password"):
        if not found.get(name):
            raise SecuritySettingError(f"sasl.{name}", "", "is missing; set it, or set sasl.jaas.config")
    return found["username"], found["password"], found.get("tokenauth", "").lower() == "true"
