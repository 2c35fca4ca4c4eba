"""The record that a consumer returns to its application."""

from __future__ import annotations

from typing import Any, NamedTuple

from hmb.records.record import Header, TimestampType


class ConsumerRecord(NamedTuple):
    """A record with its topic, its partition and its offset.

    The timestamp is in ms since 1970, or -1 in messages v0, which have no timestamp. Key and value are bytes or None.
    If the consumer has deserializers, they are the objects that the deserializers return.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...]
