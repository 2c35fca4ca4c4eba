"""The class of the records that a consumer returns to its application."""

from __future__ import annotations

from typing import Any, NamedTuple

from hmb.records.record import Header, TimestampType


class ConsumerRecord(NamedTuple):
    """A record that a consumer has read, with its topic, partition and offset.

    The timestamp is in ms since 1970. The timestamp is -1 if the record was stored as a message v0, which has no
    timestamp. The key and the value are bytes or None. If the consumer has deserializers, the key and the value are the
    objects that the deserializers return.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...]
