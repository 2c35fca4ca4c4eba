"""IP addresses: their normal form, and the addresses of a host name.

One IPv6 address can be written in several ways: `2001:db8::1` and `2001:DB8:0:0:0:0:0:1` are the same address. A
listener on `::` also accepts IPv4 connections. The operating system then reports the client's address 10.0.0.1 as
`::ffff:10.0.0.1`. Suppose that an ACL denies an operation for the host 10.0.0.1. If the broker compared the texts of
the addresses, the ACL would not apply to this client. So the broker compares normal forms: all texts for the same
address have the same normal form.
"""

from __future__ import annotations

import socket
from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(4096)
def normal_address(text: str) -> str:
    """Return the normal form of an IP address. Return every other text, such as a host name or `*`, unchanged."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def addresses_of(host: str) -> set[str]:
    """Return the IP addresses of a host name, or an empty set. `host` may also be an IP address.

    This function may wait for a name server.
    """
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return set()
