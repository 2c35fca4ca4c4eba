"""The stored records of a modern group, from which the coordinator restores the group after a failed write.

A group changes in memory before its records are on disk, and several changes can wait for the disk at the same time.
The write of a change can fail, for example because the disk is full. The coordinator then restores the group from its
stored records, as after a restart of the broker.

For example, changes 1 and 2 of a group wait for the disk. The write of change 1 fails. The coordinator restores
the group from the stored records, which contain neither of the two changes. Then the write of change 2
succeeds. The stored records now contain change 2, so the coordinator restores the group again.

Several threads can change a group. Each thread calls a method of the group when the write of its own change has ended.
The group may therefore learn that change 2 is on disk before it learns that change 1 is on disk. For this reason, each
change has a number, and each stored record has the number of the change that wrote it. So a record of an older change
never replaces a record of a newer change.
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
    """The records that a group creates in its steps.

    In one step, the group handles one request, or all deadlines that have passed.

    - `_records` contains the records of the current step.
    - `writes` contains one `Write` for each finished step that has changed the group. The caller removes the
      writes from this list, and stores their records.
    - After an upgrade from a classic group, `_replaced` contains tombstones for the classic group's records.
      Each new `Write` begins with these tombstones, until one `Write` has succeeded.
    """

    def __init__(
        self,
        restore: Callable[[Iterable[tuple[Key, Any]]], None],
        resume: Callable[[int], None],
        keys: Keys,
    ) -> None:
        """Create an empty object for one group. `keys` maps each record type of the group to a key class.

        After a failed write, the object restores the group with two functions:

        - `restore` receives all stored records of the group, and restores the group from them.
        - Then `resume` receives the current time in ms, and sets the deadlines of the members.
        """
        self.writes: list[Write] = []
        self._restore, self._resume, self._keys = restore, resume, keys
        self._records: list[KeyAndValue] = []
        self._replaced: Sequence[KeyAndValue] = ()
        self._stored = StoredRecords()

    def add(self, *records: KeyAndValue) -> None:
        """Add records to the current step of the group."""
        self._records += records

    def replace(self, tombstones: Sequence[KeyAndValue]) -> None:
        """Let the next write delete the stored records of the classic group that this group replaces.

        Each write of this group begins with `tombstones`, until one write succeeds.
        """
        self._replaced = tombstones

    def finish(self) -> None:
        """Put all records of the current step into one `Write`."""
        if self._records:
            records, self._records = [*self._replaced, *self._records], []
            self.writes.append(Write(records, partial(self._written, self._stored.begin(records))))

    def keys(self) -> set[bytes]:
        """Return the keys of all records that are on disk or are being written to disk.

        Some keys can belong to a member that has left the group, because the tombstones of this member are not yet on
        disk. Other keys can belong to the classic group that this group has replaced.
        """
        return self._stored.keys() | {key for key, _ in self._replaced}

    def replay(self, key: Key, value: Any) -> None:
        """Add a record that the journal contained when the broker started.

        `replay` does not change the members or the epochs of the group. The caller must restore the members and the
        epochs from the record.
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
    """The records of one group that are on disk or are being written to disk.

    The caller calls `begin` before it writes a change to disk, and `end` after the write.

    - `_in_flight` maps the number of a change to the change's records, until `end` is called.
    - `_values` maps the key of each record on disk to a pair: the number of the change that wrote the record, and
      the record's value.

    For example, change 1 writes a record, and change 2 deletes it. If change 2 ends first, `_values` maps the
    record's key to (2, None), a *tombstone*. When change 1 ends, the tombstone stays, because 1 is less than 2.

    When no change is being written, `end` removes all tombstones.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[int, bytes | None]] = {}  # key -> (number of the change, value)
        self._in_flight: dict[int, Sequence[KeyAndValue]] = {}
        self._last = 0  # the number of the newest change
        self._restored_at = 0  # the value that `_last` had when the group was restored the last time

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
        """Keep `records` as one change that is not on disk yet, and return the number of this change."""
        self._last += 1
        self._in_flight[self._last] = records
        return self._last

    def end(self, number: int, error: KafkaError | None) -> bool:
        """Handle the end of the write of one change. Return whether the caller must restore the group.

        `number` is the number of the change. `error` is None if the write succeeded.

        The caller must restore the group from the stored records in two cases:

        - The write failed. The group in memory must not keep the change.
        - The write succeeded, but the group was restored while the write was still running. The restored group does
          not contain the change yet.
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
