"""Change the addresses in a broker's responses, so that clients connect to the proxy again, and not to the brokers.

A client asks one broker for the addresses of all brokers (Metadata), and then connects to these addresses. If the proxy
did not change the addresses, the client would connect to the brokers directly. The proxy therefore decodes the
response, replaces the addresses, and encodes the response again in the same version.

An address is a struct with the fields `host` and `port`. The responses to Metadata, FindCoordinator and DescribeCluster
contain addresses. Responses to Produce and Fetch contain addresses if they name a new leader (KIP-951).

The client receives a response unchanged if the response contains no address, or if the proxy cannot decode it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from hmb.protocol.connection import ServerConnection
from hmb.protocol.fields import Field
from hmb.protocol.headers import RequestHeader
from hmb.protocol.schema import Struct

from .frames import WireFrame, fits


class Address(NamedTuple):
    """The host and the port of a listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


_HOLDS_ADDRESSES: dict[type, bool] = {}


def holds_addresses(message: type[Struct]) -> bool:
    """Return whether a message, or a struct inside the message, has the fields `host` and `port`."""
    if message not in _HOLDS_ADDRESSES:
        inner = filter(None, map(_struct, message.fields.values()))
        has_own = {"host", "port"} <= message.fields.keys()
        _HOLDS_ADDRESSES[message] = has_own or any(map(holds_addresses, inner))
    return _HOLDS_ADDRESSES[message]


def _struct(field: Field) -> type[Struct] | None:
    return field.struct or (field.item.struct if field.item is not None else None)


def readdressed(frame: WireFrame, replacement: Callable[[Address, bool], Address]) -> tuple[bytes | memoryview, str]:
    """Replace each address in a response. Return the bytes of the new response, and a text that names the changes.

    `replacement` gets an address and returns the new address. Its second argument is True if the response lists
    exactly one broker. If the proxy cannot decode the response, or no address changes, the bytes stay the same.
    """
    if not fits(frame):
        return frame.wire, "not decoded, so its addresses stay as they are"
    header, body = frame.decode()
    is_only = len(getattr(body, "brokers", ())) == 1
    changes: dict[Address, Address] = {}
    for struct in _structs_with_address(body):
        old = Address(struct.host, struct.port)
        if old.host and old.port > 0 and (new := replacement(old, is_only)) != old:
            changes[old] = new
            struct.host, struct.port = new
    if not changes:
        return frame.wire, ""
    parts = ServerConnection().respond(RequestHeader(correlation_id=header.correlation_id), body, frame.version)
    return b"".join(cast(list[bytes], parts)), ", ".join(f"{old} becomes {new}" for old, new in changes.items())


def _structs_with_address(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _structs_with_address(each)
    elif isinstance(value, Struct) and holds_addresses(type(value)):
        if {"host", "port"} <= value.fields.keys():
            yield value
        for name in value.fields:
            yield from _structs_with_address(getattr(value, name))
