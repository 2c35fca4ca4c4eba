"""Kafka's four security protocols, the names of SASL mechanisms, and texts for error messages.

Each listener of a broker uses one of the protocols PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL.
"""

from __future__ import annotations

from enum import StrEnum

HIDDEN = "[hidden]"  # error messages contain this text instead of a secret
PLAIN_MECHANISM, OAUTH_MECHANISM = "PLAIN", "OAUTHBEARER"  # `scram.py` declares the other mechanisms
WRONG_PASSWORD = "the name or the password is wrong"  # the broker does not reveal which one is wrong
ANOTHER_NAME = "the client wants to act under another name"
NO_KERBEROS = "; GSSAPI is Kerberos, which HMB does not have"  # the end of an error message about mechanisms


class SecurityProtocol(StrEnum):
    """A security protocol: whether a connection is encrypted, and how the client authenticates."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
