"""Rejects listeners that other computers can use without authentication. A setting can allow this use.

A listener without authentication serves everybody who can reach its address. Only programs of the same computer can
reach the loopback address. Programs of other computers can reach any other address. Therefore a listener without
authentication must use the loopback address, unless a setting allows another address.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence

from hmb.broker.config.keys import ConfigError
from hmb.broker.network.listeners import Listener
from hmb.broker.security.settings import ListenerSecurity, listener_security


def security_of(
    listeners: Sequence[Listener], properties: Mapping[str, str], *, serves_everybody: bool
) -> dict[str, ListenerSecurity]:
    """Return the security of each listener, for example its TLS certificate and its SASL mechanisms.

    The values come from the broker's settings in `properties`. Raises ConfigError if a setting is wrong. Also raises
    ConfigError if other computers can reach a listener without authentication, unless `serves_everybody` is true.
    """
    security = listener_security(properties, {listener.name: listener.protocol for listener in listeners})
    if not serves_everybody:
        check_addresses(listeners, security)
    return security


def check_addresses(listeners: Sequence[Listener], security: Mapping[str, ListenerSecurity]) -> None:
    """Raise ConfigError if a listener without authentication has an address that other computers can reach."""
    for listener in listeners:
        if not _authenticates(security[listener.name]) and _is_public(listener.host):
            raise ConfigError(
                f"other computers can reach this address, and {listener.protocol} does not ask for a login. Use "
                "SASL_SSL, SSL with ssl.client.auth=required, or a host such as 127.0.0.1. To serve everybody, set "
                "allow.unauthenticated=true (hmb broker --allow-unauthenticated)",
                "listeners",
                f"{listener.name}://{listener}",
            )


def _authenticates(security: ListenerSecurity) -> bool:
    return security.protocol.has_sasl or (security.tls is not None and security.tls.authenticates)


def _is_public(host: str) -> bool:
    """Return whether other computers can reach a host. Return False for an unknown host."""
    try:
        return not ipaddress.ip_address(host or "0.0.0.0").is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return any(not ipaddress.ip_address(str(each[4][0]).partition("%")[0]).is_loopback for each in found)
