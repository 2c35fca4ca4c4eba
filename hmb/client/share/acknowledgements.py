"""The records that a share consumer has received from one partition, with the application's acknowledgements."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from hmb.protocol.enums import AcknowledgeType
from hmb.records.record import Header, TimestampType


class ShareRecord(NamedTuple):
    """A record that a share consumer has acquired.

    The class has the fields of `ConsumerRecord`, and the field `delivery_count`. This count is 1 if the group delivers
    the record for the first time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...]
    delivery_count: int


class AcquiredOffsets:
    """The acquired offsets of one partition.

    - `waiting` contains the offsets of records that the application has received and not acknowledged.
    - `chosen` contains the acknowledgements that were not sent yet.
    """

    def __init__(self) -> None:
        self.waiting: set[int] = set()
        self.chosen: dict[int, AcknowledgeType] = {}

    def choose(self, offset: int, type: AcknowledgeType) -> None:
        """Store the acknowledgement of a record. Raises ValueError if the record is not acquired."""
        if offset not in self.waiting:
            raise ValueError(f"the record at offset {offset} is not acquired, or was acknowledged before")
        self.waiting.discard(offset)
        self.chosen[offset] = type

    def choose_all(self, type: AcknowledgeType) -> None:
        """Acknowledge the records that the application has not yet acknowledged."""
        self.chosen |= dict.fromkeys(self.waiting, type)
        self.waiting.clear()

    def take(self) -> list[tuple[int, int, list[int]]]:
        """Return the acknowledgements that were not sent yet, and remove them from this object.

        Each item of the list is a range of offsets: `(first offset, last offset, types)`. The list `types` contains one
        acknowledgement type for each offset, or only one type if all offsets have the same type.
        """
        chosen, self.chosen = self.chosen, {}
        return ranges(chosen)


def ranges(chosen: dict[int, AcknowledgeType]) -> list[tuple[int, int, list[int]]]:
    """Return ranges of consecutive acknowledged offsets: `[(first offset, last offset, types)]`.

    The list `types` contains one type for each offset, or a single type if all types are equal.
    """
    found = []
    numbered: Iterable[tuple[int, int]] = enumerate(sorted(chosen))
    for _, group in groupby(numbered, key=lambda pair: pair[1] - pair[0]):
        offsets = [offset for _, offset in group]
        types = [int(chosen[offset]) for offset in offsets]
        found.append((offsets[0], offsets[-1], types[:1] if len(set(types)) == 1 else types))
    return found
