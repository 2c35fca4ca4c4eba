"""The members, epochs and target of a KIP-848 group, and the records that store them.

A `ConsumerGroup` has one `ConsumerState`. During one request, the group changes the members, the epochs or the target
through the methods of this class. Each method creates the record of its change. At the end of the request, `finish`
puts all these records into one `Write`. The base class `ModernState` contains the parts that share groups and streams
groups also have.

For example, when a member joins, the methods create records of its subscription, of the new group epoch, of the targets
and of its assignment. The journal stores all these records in one batch.

Source: KIP-848; Kafka's `ModernGroup`, `ConsumerGroup`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from hmb.coordinator.journal.records import (
    KEYS,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    Key,
    KeyAndValue,
    Keys,
)
from hmb.coordinator.modern.member import ConsumerMember
from hmb.coordinator.modern.records import (
    MEMBER_KEYS,
    current_record,
    encode,
    member_record,
    partitions_of,
    target_record,
    tombstones_of_member,
    with_current,
    with_metadata,
)
from hmb.coordinator.modern.store import RecordedSteps
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import PartitionId

FIRST_EPOCH = 1  # the group epoch of a new group


class ModernMember(Protocol):
    """A member of any kind of modern group."""

    @property
    def member_id(self) -> str: ...


MemberT = TypeVar("MemberT", bound=ModernMember)
TargetT = TypeVar("TargetT")  # the type of a member's target: partitions, or the tasks of Kafka Streams


class ModernState(ABC, Generic[MemberT, TargetT]):
    """The members, the epochs and the target of one group, and the records of its current step.

    These parts are the same for a KIP-848 group, a share group and a streams group. Kafka calls these kinds of group
    *modern*. The abstract methods contain the differences: each kind of group has its own types of records.

    All member ids in `targets` are ids of `members`.
    """

    record_keys: ClassVar[Keys]  # the types of all records of the group
    member_keys: ClassVar[Sequence[type[Key]]]  # the types of a member's records, in the order of their tombstones

    def __init__(self, group_id: str, resume: Callable[[int], None]) -> None:
        """Create the state of an empty group.

        After a failed write, the state restores the group from its stored records and calls `resume(now)`, which
        restarts the sessions of all members.
        """
        self.group_id = group_id
        self.events: list[str] = []
        self._steps = RecordedSteps(self._restore_all, resume, self.record_keys)
        self.writes = self._steps.writes
        self._forget()

    def _forget(self) -> None:
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0  # the hash of the topics to which the group subscribes
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

    def check_room(self, kind: str, max_size: int) -> None:
        """Raise GROUP_MAX_SIZE_REACHED if the group has `max_size` members or more."""
        if len(self.members) >= max_size:
            why = f"The {kind} group has reached its maximum capacity of {max_size} members."
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, why)

    # -- changes

    def put_metadata(self, member: MemberT) -> None:
        """Store the member, and create the record of its metadata, for example its subscription."""
        self._put(member)
        self._steps.add(self._member_record(member))

    def put_assignment(self, member: MemberT) -> None:
        """Store the member, and create the record of its epoch and its current assignment."""
        self._put(member)
        self._steps.add(self._current_record(member))

    def _put(self, member: MemberT) -> None:
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        self._take_out(member_id)
        self.targets.pop(member_id, None)
        self._steps.add(*tombstones_of_member(self.member_keys, self.group_id, member_id))

    def _take_out(self, member_id: str) -> None:
        del self.members[member_id]

    def set_target(self, member_id: str, target: TargetT) -> None:
        if self.targets.get(member_id) != target:
            self.targets[member_id] = target
            self._steps.add(self._target_record(member_id, target))

    def set_assignment_epoch(self, epoch: int, timestamp: int) -> None:
        self.assignment_epoch, self.assignment_timestamp = epoch, timestamp
        self._steps.add(self._assignment_epoch_record(epoch, timestamp))

    def replace_classic(self, tombstones: Sequence[KeyAndValue]) -> None:
        """Add tombstones to the records of this step, because this group replaces a classic group."""
        self._steps.add(*tombstones)

    def finish(self) -> None:
        """End a step: put the records of all its changes into `writes`."""
        self._steps.finish()

    # -- the journal

    def replay(self, key: Key, value: Any) -> None:
        """Apply a record of the journal when the broker starts.

        The journal yields one record for each key, in any order.
        """
        self._steps.replay(key, value)
        self._restore(key, value)

    def _restore_all(self, records: Iterable[tuple[Key, Any]]) -> None:
        self._forget()
        for key, value in records:
            self._restore(key, value)

    # -- the records of one kind of group

    @abstractmethod
    def _member_record(self, member: MemberT) -> KeyAndValue: ...

    @abstractmethod
    def _current_record(self, member: MemberT) -> KeyAndValue: ...

    @abstractmethod
    def _target_record(self, member_id: str, target: TargetT) -> KeyAndValue: ...

    @abstractmethod
    def _assignment_epoch_record(self, epoch: int, timestamp: int) -> KeyAndValue: ...

    @abstractmethod
    def _restore(self, key: Key, value: Any) -> None: ...

    @abstractmethod
    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones that delete all records of a group without members."""


class ConsumerState(ModernState[ConsumerMember, frozenset[PartitionId]]):
    """The members, epochs and target of one KIP-848 group.

    - All member ids in `instances` are ids of `members`.
    - The keys of `_owners` are the partitions that a member owns or must still give up. The value is the member's id.
    """

    record_keys = KEYS
    member_keys = MEMBER_KEYS

    def _forget(self) -> None:
        super()._forget()
        self.instances: dict[str, str] = {}  # group instance id -> member id
        self.regexes: dict[str, frozenset[str]] = {}  # expression -> the names of the matching topics
        self._owners: dict[PartitionId, str] = {}

    def is_taken(self, partition: PartitionId) -> bool:
        return partition in self._owners

    # -- changes

    def _put(self, member: ConsumerMember) -> None:
        self._take_out(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        for partition in (*member.assigned, *member.revoking):
            self._owners[partition] = member.member_id

    def _take_out(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.instance_id is not None and self.instances.get(member.instance_id) == member_id:
            del self.instances[member.instance_id]
        for partition in (*member.assigned, *member.revoking):
            if self._owners.get(partition) == member_id:
                del self._owners[partition]

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.epoch, self.metadata_hash = epoch, metadata_hash
        value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        self._steps.add(encode(ConsumerGroupMetadataKey(group_id=self.group_id), value))

    def set_regex(self, regex: str, topics: frozenset[str] | None, version: int, timestamp: int) -> None:
        """Store the topics that a regular expression matches. If `topics` is None, delete the expression."""
        key = ConsumerGroupRegularExpressionKey(group_id=self.group_id, regular_expression=regex)
        if topics is None:
            del self.regexes[regex]
            self._steps.add(encode(key, None))
        else:
            self.regexes[regex] = topics
            value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp)
            self._steps.add(encode(key, value))

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones that delete all records of a group without members."""
        keys: list[Key] = [
            ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id),
            *(
                ConsumerGroupRegularExpressionKey(group_id=self.group_id, regular_expression=regex)
                for regex in self.regexes
            ),
            ConsumerGroupPartitionMetadataKey(group_id=self.group_id),  # Kafka 4.0 writes this record.
            ConsumerGroupMetadataKey(group_id=self.group_id),
        ]
        return [encode(key, None) for key in keys]

    # -- the journal

    def _member_record(self, member: ConsumerMember) -> KeyAndValue:
        return member_record(self.group_id, member)

    def _current_record(self, member: ConsumerMember) -> KeyAndValue:
        return current_record(self.group_id, member)

    def _target_record(self, member_id: str, target: frozenset[PartitionId]) -> KeyAndValue:
        return target_record(self.group_id, member_id, target)

    def _assignment_epoch_record(self, epoch: int, timestamp: int) -> KeyAndValue:
        value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
        return encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)

    def _restore(self, key: Key, value: Any) -> None:
        match key:
            case ConsumerGroupMetadataKey():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupMemberMetadataKey():
                self._put(with_metadata(self._member(key.member_id), value))
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._put(with_current(self._member(key.member_id), value))
            case ConsumerGroupTargetAssignmentMetadataKey():
                self.assignment_epoch, self.assignment_timestamp = value.assignment_epoch, value.assignment_timestamp
            case ConsumerGroupTargetAssignmentMemberKey():
                self.targets[key.member_id] = partitions_of(value.topic_partitions)
            case ConsumerGroupRegularExpressionKey():
                self.regexes[key.regular_expression] = frozenset(value.topics)

    def _member(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(member_id)
