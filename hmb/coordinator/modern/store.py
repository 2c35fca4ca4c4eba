"""The records of a group that are on disk, so that a change that could not be written can be taken back.

A group changes in memory first, and several changes may be on their way to the disk at once. When one of them fails
(the disk is full, say), the group must become what its records say, which is what it would be after a restart: it is
made again from them. So must it when a change is written that was begun before such a failure.

Each record counts with the number of the change that wrote it, since the news of two changes may come in either order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hmb.coordinator.group import KeyAndValue
from hmb.protocol.errors import KafkaError


class StoredRecords:
    """One group's."""

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[int, bytes | None]] = {}  # with the number of the change
        self._under_way = 0
        self._last = 0  # the number of the last change that was begun
        self._made_again = 0  # what was the last one when the group was made again

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return ((key, value) for key, (_, value) in self._values.items() if value is not None)

    def put(self, key: bytes, value: bytes) -> None:
        """It is there, since before everything else."""
        self._values[key] = 0, value

    def begin(self) -> int:
        """A change is on its way: its number."""
        self._under_way += 1
        self._last += 1
        return self._last

    def end(self, number: int, records: Sequence[KeyAndValue], error: KafkaError | None) -> bool:
        """What became of a change; whether the group must be made again from what is here."""
        self._under_way -= 1
        for key, value in () if error else records:
            if self._values.get(key, (0, None))[0] <= number:
                self._values[key] = number, value
        if not self._under_way:
            self._values = {key: stored for key, stored in self._values.items() if stored[1] is not None}
        if error is None and number > self._made_again:
            return False
        self._made_again = self._last
        return True
