"""The class of the records that a consumer returns to its application."""

from __future__ import annotations

from typing import Any, NamedTuple

from hmb.records.record import Header, TimestampType


class ConsumerRecord(NamedTuple):
    """A record that a consumer has read, with its topic, partition and offset.

    The timestamp is in ms since 1970, or -1 if the record has no timestamp, for example in a message v0.

    The key and the value are bytes or None. If the consumer has a deserializer for the key or the value, it
    converts the bytes to another object. None stays None.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...]
