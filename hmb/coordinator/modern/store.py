"""The stored records of a group, from which it is restored when a write fails.

A group changes in memory first, and several changes can wait for the disk at the same time. If one of them fails, for
example because the disk is full, the group must return to its stored state. It is restored from its records, as after a
restart. A change that started before the failure and is stored after it restores the group again.

Two changes can finish in any order. Each record therefore has the number of the change that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hmb.coordinator.journal.records import KeyAndValue
from hmb.protocol.errors import KafkaError


class StoredRecords:
    """The stored records of one group."""

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[int, bytes | None]] = {}  # key -> (number of the change, value)
        self._in_flight = 0
        self._last = 0  # the number of the last started change
        self._restored_at = 0  # the value of `_last` when the group was restored the last time

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return ((key, value) for key, (_, value) in self._values.items() if value is not None)

    def put(self, key: bytes, value: bytes) -> None:
        """Add a record that the journal already contained at the start of the broker."""
        self._values[key] = 0, value

    def begin(self) -> int:
        """Start a change and return its number."""
        self._in_flight += 1
        self._last += 1
        return self._last

    def end(self, number: int, records: Sequence[KeyAndValue], error: KafkaError | None) -> bool:
        """End a change. A failed change has an `error`. Return whether to restore the group from the stored records."""
        self._in_flight -= 1
        for key, value in () if error else records:
            if self._values.get(key, (0, None))[0] <= number:
                self._values[key] = number, value
        if not self._in_flight:
            self._values = {key: stored for key, stored in self._values.items() if stored[1] is not None}
        if error is None and number > self._restored_at:
            return False
        self._restored_at = self._last
        return True
