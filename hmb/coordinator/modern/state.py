"""Defines the base class that stores a modern group's members, epochs and target assignment in records.

A modern group (group.py) has one object of a subclass of `ModernState`. This object contains the members, the epochs
and the target assignment. When the group handles a request, it calls methods of this object. They change the object in
memory, and create records of the changes. At the end of the request, `finish` puts all these records into one `Write`,
which the journal stores.

After a restart of the broker, or after a failed write, a `ModernState` restores the group from the group's
stored records.

Each kind of modern group, for example the share group, defines its own classes for these five record types:
    name in RecordTypes   content
    group                 the group epoch, and the hash of the topics that the group reads
    member                the data that a member has sent, for example its subscription
    target_metadata       the assignment epoch, and the time at which the broker computed the target assignment
    target                the target assignment of one member
    current               the epoch of one member, and the partitions or tasks that it owns now

For example, when a member joins, the methods of `ModernState` create several records. These records contain the
member's subscription, the new group epoch, the new target assignments, and the member's current assignment. The
journal stores all of them in one batch.

Source: KIP-848; Kafka's `ModernGroup`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from hmb.coordinator.journal.records import Key, KeyAndValue, Keys, Value, encode_key, encode_value
from hmb.coordinator.modern.store import RecordedSteps
from hmb.protocol.errors import ErrorCode, KafkaError

FIRST_EPOCH = 1  # the group epoch of a new group


class ModernMember(Protocol):
    """A member of a KIP-848 group, share group or streams group."""

    @property
    def member_id(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    @property
    def revocation_timeout(self) -> int | None:
        """The time limit (ms) for giving up partitions or tasks, or None if no such limit applies to the member now."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has moved to this epoch and owns all partitions of its target assignment."""


MemberT = TypeVar("MemberT", bound=ModernMember)
TargetT = TypeVar("TargetT")  # the type of a member's target: partitions, or the tasks of Kafka Streams


class RecordTypes(NamedTuple, Generic[MemberT, TargetT]):
    """The record types of one kind of group, and functions that convert members to records and back.

    - `keys` maps the number of each record type to the class of its keys, for example 3 to
      `ConsumerGroupMetadataKey`.
    - `with_metadata` and `with_current` return a copy of a member with the data of a record. The second
      argument is the record's value.
    - `target_value` converts a target to the value of a record, and `target_of` converts this value back. A
      target contains the partitions or tasks that a member will own.
    """

    keys: Keys
    group: type[Key]
    member: type[Key]
    target_metadata: type[Key]
    target: type[Key]
    current: type[Key]
    new_member: Callable[[str], MemberT]
    metadata_value: Callable[[MemberT], Value]
    with_metadata: Callable[[MemberT, Any], MemberT]
    current_value: Callable[[MemberT], Value]
    with_current: Callable[[MemberT, Any], MemberT]
    target_value: Callable[[TargetT], Value]
    target_of: Callable[[Any], TargetT]


class ModernState(ABC, Generic[MemberT, TargetT]):
    """The members, the epochs and the target assignment of one group.

    A `ModernState` also creates the records that store each change of the group.

    `members` maps the id of each member to the member. `targets` maps the id of a member to the target assignment
    of this member. Each id in `targets` is also in `members`.
    """

    record_types: RecordTypes[MemberT, TargetT]

    def __init__(self, group_id: str, resume: Callable[[int], None]) -> None:
        """Create the state of an empty group.

        If the journal cannot write a change of the group, this object restores the group from its stored records. It
        then calls `resume(now)`, where `now` is the current time in ms. The function `resume` sets the deadlines of the
        restored members. If a member already has a deadline for its next heartbeat, `resume` keeps this deadline.
        """
        self.group_id = group_id
        self.event_texts: list[str] = []
        self._steps = RecordedSteps(self._restore_all, resume, self.record_types.keys)
        self.writes = self._steps.writes
        self._forget()

    def _forget(self) -> None:
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0  # the hash of the topics that the group reads
        self.assignment_epoch = 0
        self.assignment_timestamp = 0  # ms since 1970, or 0 before the first target
        self.members: dict[str, MemberT] = {}
        self.targets: dict[str, TargetT] = {}

    @property
    def is_empty(self) -> bool:
        return not self.members

    def known(self, member_id: str) -> MemberT:
        """Return the member with this id. Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            why = f"Member {member_id} is not a member of group {self.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)
        return member

    def check_not_full(self, kind: str, max_size: int) -> None:
        """Raise GROUP_MAX_SIZE_REACHED if the group has `max_size` members or more."""
        if len(self.members) >= max_size:
            why = f"The {kind} group has reached its maximum capacity of {max_size} members."
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, why)

    # -- changes

    def increase_epoch(self, metadata_hash: int) -> None:
        """Increase the group epoch by 1. The target assignment of the old epoch is then outdated.

        `metadata_hash` is the current hash of the topics that the group reads.
        """
        self.set_epoch(self.epoch + 1, metadata_hash)

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.epoch, self.metadata_hash = epoch, metadata_hash
        self._add(self.record_types.group, self._group_value())

    def put_metadata(self, member: MemberT) -> None:
        """Store the member, and create the record of its metadata, for example its subscription."""
        self._put(member)
        self._add(self.record_types.member, self.record_types.metadata_value(member), member_id=member.member_id)

    def put_assignment(self, member: MemberT) -> None:
        """Store the member, and create the record of its epoch and its current assignment."""
        self._put(member)
        self._add(self.record_types.current, self.record_types.current_value(member), member_id=member.member_id)

    def _put(self, member: MemberT) -> None:
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        self._take_out(member_id)
        self.targets.pop(member_id, None)
        self._steps.add(*self._tombstones_of(member_id))

    def _tombstones_of(self, member_id: str) -> list[KeyAndValue]:
        types = self.record_types
        kinds = (types.current, types.target, types.member)  # the order in which Kafka deletes these records
        return [self._record(kind, None, member_id=member_id) for kind in kinds]

    def all_tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones that delete all records of the group.

        The list begins with the tombstones of outdated records. For example, a member has left the group, but the
        journal still contains the records of this member.
        """
        of_members = [tombstone for member_id in self.members for tombstone in self._tombstones_of(member_id)]
        known = [*of_members, *self.tombstones()]
        others = self._steps.keys() - {key for key, _ in known}
        return [*((key, None) for key in sorted(others)), *known]

    def _take_out(self, member_id: str) -> None:
        del self.members[member_id]

    def set_target(self, member_id: str, target: TargetT) -> None:
        if self.targets.get(member_id) != target:
            self.targets[member_id] = target
            self._add(self.record_types.target, self.record_types.target_value(target), member_id=member_id)

    def set_assignment_epoch(self, epoch: int, timestamp: int) -> None:
        self.assignment_epoch, self.assignment_timestamp = epoch, timestamp
        fields: dict[str, Any] = {"assignment_epoch": epoch, "assignment_timestamp": timestamp}
        self._add(self.record_types.target_metadata, self.record_types.target_metadata.value(**fields))

    def replace_classic(self, tombstones: Sequence[KeyAndValue]) -> None:
        """Add `tombstones` to the next write. They delete the classic group that this group replaces."""
        self._steps.replace(tombstones)

    def finish(self) -> None:
        """End the current step (for example, one request): put the records of all its changes into `writes`."""
        self._steps.finish()

    # -- the journal

    def _add(self, kind: type[Key], value: Value | None, **names: str) -> None:
        """Add a record to the current step.

        `names` contains the fields of the key after the group id, such as the member id.
        """
        self._steps.add(self._record(kind, value, **names))

    def _record(self, kind: type[Key], value: Value | None, **names: str) -> KeyAndValue:
        key = kind(**{"group_id": self.group_id, **names})
        return encode_key(key), None if value is None else encode_value(value)

    def _group_value(self) -> Value:
        fields: dict[str, Any] = {"epoch": self.epoch, "metadata_hash": self.metadata_hash}
        return self.record_types.group.value(**fields)

    def replay(self, key: Key, value: Any) -> None:
        """Restore a part of the group from a record of the journal when the broker starts.

        For each key, the journal passes only the newest record. The records can come in any order.
        """
        self._steps.replay(key, value)
        self._restore(key, value)

    def _restore_all(self, records: Iterable[tuple[Key, Any]]) -> None:
        self._forget()
        for key, value in records:
            self._restore(key, value)

    def _restore(self, key: Key, value: Any) -> None:
        """Restore one part of the group from a record. Subclasses with more record types override this method."""
        types = self.record_types
        if isinstance(key, types.group):
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
        elif isinstance(key, types.target_metadata):
            self.assignment_epoch, self.assignment_timestamp = value.assignment_epoch, value.assignment_timestamp
        elif isinstance(key, types.target):
            self.targets[_member_id(key)] = types.target_of(value)
        elif isinstance(key, types.member):
            self._put(types.with_metadata(self._member(_member_id(key)), value))
        elif isinstance(key, types.current):
            self._put(types.with_current(self._member(_member_id(key)), value))

    def _member(self, member_id: str) -> MemberT:
        return self.members.get(member_id) or self.record_types.new_member(member_id)

    @abstractmethod
    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones for the group's own records, without the records of its members."""


def _member_id(key: Key) -> str:
    member_id: str = key.member_id  # type: ignore[attr-defined]  # the keys of a member's records have this field
    return member_id
