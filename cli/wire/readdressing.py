"""Changing the addresses in a broker's answers, so that clients stay on a proxy.

A client asks one broker where all of them are (Metadata) and goes on there.  Whoever wants to stay in between has to
change what it is told: the answer is decoded, the addresses are replaced, and it is encoded again in the same version.
An address is wherever a struct has a `host` and a `port`: in Metadata, FindCoordinator, DescribeCluster, and in what
Produce and Fetch tell of a new leader (KIP-951).  An answer without one goes through as it came, and so does
one that cannot be decoded.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from hmb.protocol.connection import ServerConnection
from hmb.protocol.headers import RequestHeader
from hmb.protocol.schema import Field, Struct

from .frames import Frame, fits


class Address(NamedTuple):
    """Where something listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


_HOLDS: dict[type, bool] = {}


def holds_addresses(message: type[Struct]) -> bool:
    """Whether a message, or a struct in it, has a host and a port."""
    if message not in _HOLDS:
        inner = filter(None, map(_struct, message.fields.values()))
        _HOLDS[message] = {"host", "port"} <= message.fields.keys() or any(map(holds_addresses, inner))
    return _HOLDS[message]


def _struct(field: Field) -> type[Struct] | None:
    return field.struct or (field.item.struct if field.item is not None else None)


def readdressed(frame: Frame, address: Callable[[Address, bool], Address]) -> tuple[bytes | memoryview, str]:
    """The answer with other addresses, and what was changed, or why nothing could be.

    `address` gives the new one for an old one, which may be that of the only broker there is.
    """
    if not fits(frame):
        return frame.wire, "not decoded, so addresses in it stay as they are"
    header, body = frame.decode()
    is_only = len(getattr(body, "brokers", ())) == 1
    changes: dict[Address, Address] = {}
    for struct in _with_address(body):
        old = Address(struct.host, struct.port)
        if old.host and old.port > 0 and (new := address(old, is_only)) != old:
            changes[old] = new
            struct.host, struct.port = new
    if not changes:
        return frame.wire, ""
    parts = ServerConnection().respond(RequestHeader(correlation_id=header.correlation_id), body, frame.version)
    return b"".join(cast(list[bytes], parts)), ", ".join(f"{old} becomes {new}" for old, new in changes.items())


def _with_address(value: Any) -> Iterator[Any]:
    """The structs in a message that have a host and a port."""
    if isinstance(value, list):
        for each in value:
            yield from _with_address(each)
    elif isinstance(value, Struct) and holds_addresses(type(value)):
        if {"host", "port"} <= value.fields.keys():
            yield value
        for name in value.fields:
            yield from _with_address(getattr(value, name))
