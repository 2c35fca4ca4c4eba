"""Kafka's four security protocols, and the text that error messages show instead of a secret.

Each listener of a broker uses one of these protocols.
"""

from __future__ import annotations

from enum import StrEnum

HIDDEN = "[hidden]"  # error messages contain this text instead of a secret


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
