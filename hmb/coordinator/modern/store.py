"""The stored records of a modern group, from which the coordinator restores the group after a failed write.

A group changes in memory before its records are on disk, and several changes can wait for the disk at the same time.
The write of a change can fail, for example because the disk is full. The coordinator then restores the group from its
stored records, as after a restart of the broker.

For example, changes 1 and 2 of a group wait for the disk. The write of change 1 fails, so the coordinator restores the
group without changes 1 and 2. The write of change 2 succeeds, so the coordinator restores the group again, now with
change 2.

Several threads can change a group, and each thread reports to the group when the write of its change has ended. So the
group can learn that change 2 is on disk before it learns the same about change 1. Each change therefore has a number,
and each stored record has the number of its change. A record of an older change then never replaces a record of a newer
change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from hmb.coordinator.group import Write
from hmb.coordinator.journal.records import (
    Key,
    KeyAndValue,
    Keys,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from hmb.protocol.errors import KafkaError


class RecordedSteps:
    """The records of a group's steps. In a step, the group handles one request, or one deadline that has passed.

    - `writes` contains one `Write` for each step that has changed the group. The caller takes the writes from this list
      and stores them.
    - `_records` contains the records of the current step.
    - If this group has replaced another group, `_replaced` contains the tombstones that delete the records of the other
      group. Each write contains these tombstones, until a write succeeds.
    """

    def __init__(
        self,
        restore: Callable[[Iterable[tuple[Key, Any]]], None],
        resume: Callable[[int], None],
        keys: Keys,
    ) -> None:
        """Create an object without records. `keys` maps each record type of the group to the class of its keys.

        After a failed write, the new object calls two functions of the group. `restore` receives all stored records,
        and restores the group from them. Then `resume` receives the time (ms), and starts the members' sessions again.
        """
        self.writes: list[Write] = []
        self._restore, self._resume, self._keys = restore, resume, keys
        self._records: list[KeyAndValue] = []
        self._replaced: Sequence[KeyAndValue] = ()
        self._stored = StoredRecords()

    def add(self, *records: KeyAndValue) -> None:
        """Add records of the current step, in which the group handles one request or one deadline that has passed."""
        self._records += records

    def replace(self, tombstones: Sequence[KeyAndValue]) -> None:
        """Add `tombstones` to each write until a write succeeds, because this group has replaced another group.

        The tombstones delete the records of the other group.
        """
        self._replaced = tombstones

    def finish(self) -> None:
        """Put all records of the current step (one request, or one deadline that has passed) into one `Write`."""
        if self._records:
            records, self._records = [*self._replaced, *self._records], []
            self.writes.append(Write(records, partial(self._written, self._stored.begin(records))))

    def keys(self) -> set[bytes]:
        """Return the keys of all records that are on disk, or may still be written.

        These are the records of this group and of the group that it has replaced. The group in memory may have fewer
        members: if the write of a removal fails, the records of the removed member are still on disk.
        """
        return self._stored.keys() | {key for key, _ in self._replaced}

    def replay(self, key: Key, value: Any) -> None:
        """Add a record to the stored records, because the journal contained it when the broker started.

        This method does not change the group. The caller must restore the group from the record.
        """
        self._stored.put(encode_key(key), encode_value(value))

    def _written(self, number: int, error: KafkaError | None, now: int) -> None:
        if error is None:
            self._replaced = ()
        if self._stored.end(number, error):
            self._restore([self._decoded(key, value) for key, value in self._stored])
            self._resume(now)

    def _decoded(self, raw: bytes, value: bytes) -> tuple[Key, Any]:
        key = decode_key(raw, self._keys)
        return key, decode_value(key, value)


class StoredRecords:
    """The records of one group that are on disk, and the records of changes that are being written to disk.

    - `_in_flight` maps the number of each change that is being written to the records of this change.
    - `_values` maps the key of each record on disk to its value, and to the number of the change that wrote it.
    - If change 2 deletes a record, `_values` contains a tombstone (the value None) with the number 2. If the write of
      change 1 ends later, the record of change 1 does not replace the tombstone, because 1 is less than 2. When no
      change is being written any more, the tombstones are removed.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[int, bytes | None]] = {}  # key -> (number of the change, value)
        self._in_flight: dict[int, Sequence[KeyAndValue]] = {}
        self._last = 0  # the number of the newest change
        self._restored_at = 0  # the number of the newest change when the group was last restored

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return ((key, value) for key, (_, value) in self._values.items() if value is not None)

    def put(self, key: bytes, value: bytes) -> None:
        """Add a record that the journal contained when the broker started."""
        self._values[key] = 0, value

    def keys(self) -> set[bytes]:
        """Return the keys of all records that are on disk or are being written. Tombstones do not count as records."""
        in_flight = {key for records in self._in_flight.values() for key, value in records if value is not None}
        return in_flight | {key for key, _ in self}

    def begin(self, records: Sequence[KeyAndValue]) -> int:
        """Start the write of a change, and return the number of this change. The journal stores `records` later."""
        self._last += 1
        self._in_flight[self._last] = records
        return self._last

    def end(self, number: int, error: KafkaError | None) -> bool:
        """Record that the write of the change `number` has ended. `error` is None if the write has succeeded.

        Return whether the caller must restore the group from the stored records.
        """
        records = self._in_flight.pop(number)
        for key, value in () if error else records:
            if self._values.get(key, (0, None))[0] <= number:
                self._values[key] = number, value
        if not self._in_flight:
            self._values = {key: stored for key, stored in self._values.items() if stored[1] is not None}
        if error is None and number > self._restored_at:
            return False
        self._restored_at = self._last
        return True
