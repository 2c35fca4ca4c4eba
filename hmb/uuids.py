"""Kafka's text form of a UUID: 22 letters, digits, "-" and "_".

A UUID consists of 16 bytes. It is the id of a topic, a cluster or a directory, or of a member in some groups.

Kafka's messages contain the id of a topic or a directory as 16 bytes. In all other places, for example in files,
log lines and cluster ids, a UUID is a text: the 16 bytes in base64, in the variant for URLs and without the
padding "==".
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
