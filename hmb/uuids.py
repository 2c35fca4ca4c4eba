"""Kafka's text form of a UUID: 22 letters, digits, "-" and "_".

A UUID is a number of 16 bytes. Topics, clusters and directories have a UUID as their id, and so do the members of some
groups. Messages contain the 16 bytes. Files, keys and log lines contain a text: the base64 encoding of the 16 bytes in
the variant for URLs, without the padding "==" at its end.
"""

from __future__ import annotations

import base64
from uuid import UUID


def encode_uuid(value: UUID) -> str:
    """Return the text form of a UUID."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    """Return the UUID with this text form. Raises ValueError."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
