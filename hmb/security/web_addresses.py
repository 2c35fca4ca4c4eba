"""Decides from which addresses HMB may load keys and tokens: files, HTTPS servers, and servers on this computer.

Over plain HTTP, an attacker in the network could read a token, or replace the keys that HMB loads from an
identity provider. HMB therefore allows plain HTTP only for the loopback address, for tests.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

PROBLEM = "the value must begin with https:// or file://, or with http:// for an address of this computer"


def is_safe(address: str) -> bool:
    """Return whether HMB may load secrets or trusted keys from an address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    if parts.scheme == "http":
        return _is_loopback(parts.hostname or "")
    return (parts.scheme == "https" and bool(parts.hostname)) or (parts.scheme == "file" and not parts.netloc)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
