"""The members, epochs, target and topology of a streams group, and the records that store them.

Like the `ConsumerState` of a KIP-848 group, each method that changes the state creates the record of its change.
`finish` puts all records of one request into one `Write`. If a write fails, the state is restored from the stored
records (`RecordedSteps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hmb.coordinator.journal.records import Key, KeyAndValue
from hmb.coordinator.modern.records import encode, tombstones_of_member
from hmb.coordinator.modern.state import FIRST_EPOCH, ModernState
from hmb.coordinator.modern.store import RecordedSteps
from hmb.coordinator.streams.member import StreamsMember
from hmb.coordinator.streams.member_records import (
    MEMBER_KEYS,
    current_record,
    member_record,
    target_record,
    with_current,
    with_metadata,
)
from hmb.coordinator.streams.records import (
    STREAMS_KEYS,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
)
from hmb.coordinator.streams.tasks import Tasks, tasks_in
from hmb.coordinator.streams.topology import Topology

INCOMPLETE = -1  # the validated topology epoch while topics are missing


class StreamsState(ModernState[StreamsMember, Tasks]):
    """The members, epochs, target and topology of one group.

    - All member ids in `targets` are ids of `members`.
    - `validated_epoch` is the epoch of the topology if all its topics exist, and otherwise INCOMPLETE.
    - `configs` contains the settings that the last target depends on.
    """

    def __init__(self, group_id: str, resume: Callable[[int], None]) -> None:
        """Create the state of an empty group. After a failed write, the state is restored and calls `resume(now)`."""
        keys = {key.record_type: key for key in STREAMS_KEYS}
        super().__init__(group_id, RecordedSteps(self._restore_all, resume, keys))

    def _forget(self) -> None:
        super()._forget()
        self.assignment_epoch = FIRST_EPOCH  # A member that waits for the first target needs an epoch above 0.
        self.topology: Topology | None = None
        self.validated_epoch = 0
        self.configs: dict[str, str] = {}

    # -- changes

    def put_metadata(self, member: StreamsMember) -> None:
        self.members[member.member_id] = member
        self._steps.add(member_record(self.group_id, member))

    def put_assignment(self, member: StreamsMember) -> None:
        self.members[member.member_id] = member
        self._steps.add(current_record(self.group_id, member))

    def remove(self, member_id: str) -> None:
        del self.members[member_id]
        self.targets.pop(member_id, None)
        self._steps.add(*tombstones_of_member(MEMBER_KEYS, self.group_id, member_id))

    def set_topology(self, topology: Topology) -> None:
        self.topology = topology
        self._steps.add(encode(StreamsGroupTopologyKey(group_id=self.group_id), topology))

    def set_epoch(self, epoch: int, metadata_hash: int, validated_epoch: int, configs: Mapping[str, str]) -> None:
        self.epoch, self.metadata_hash = epoch, metadata_hash
        self.validated_epoch, self.configs = validated_epoch, dict(configs)
        kind = StreamsGroupMetadataValue.LastAssignmentConfig
        value = StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_epoch,
            last_assignment_configs=[kind(key=key, value=value) for key, value in sorted(configs.items())],
        )
        self._steps.add(encode(StreamsGroupMetadataKey(group_id=self.group_id), value))

    def _target_record(self, member_id: str, target: Tasks) -> KeyAndValue:
        return target_record(self.group_id, member_id, target)

    def set_assignment_epoch(self, epoch: int, timestamp: int) -> None:
        self.assignment_epoch, self.assignment_timestamp = epoch, timestamp
        value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
        self._steps.add(encode(StreamsGroupTargetAssignmentMetadataKey(group_id=self.group_id), value))

    def replace_classic(self, tombstones: Sequence[KeyAndValue]) -> None:
        """Add tombstones to the records of this step, because this group replaces a classic group."""
        self._steps.add(*tombstones)

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones that delete all records of a group without members."""
        keys = (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupMetadataKey, StreamsGroupTopologyKey)
        return [encode(key(group_id=self.group_id), None) for key in keys]

    # -- the journal

    def replay(self, key: Key, value: Any) -> None:
        """Apply a record of the journal when the broker starts."""
        self._steps.replay(key, value)
        self._restore(key, value)

    def _restore_all(self, records: Iterable[tuple[Key, Any]]) -> None:
        self._forget()
        for key, value in records:
            self._restore(key, value)

    def _restore(self, key: Key, value: Any) -> None:
        match key:
            case StreamsGroupMetadataKey():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
                self.validated_epoch = value.validated_topology_epoch
                self.configs = {each.key: each.value for each in value.last_assignment_configs or ()}
            case StreamsGroupMemberMetadataKey():
                self.members[key.member_id] = with_metadata(self._member(key.member_id), value)
            case StreamsGroupCurrentMemberAssignmentKey():
                self.members[key.member_id] = with_current(self._member(key.member_id), value)
            case StreamsGroupTargetAssignmentMetadataKey():
                self.assignment_epoch, self.assignment_timestamp = value.assignment_epoch, value.assignment_timestamp
            case StreamsGroupTargetAssignmentMemberKey():
                self.targets[key.member_id] = Tasks(tasks_in(value.active_tasks), tasks_in(value.standby_tasks))
            case StreamsGroupTopologyKey():
                self.topology = value

    def _member(self, member_id: str) -> StreamsMember:
        return self.members.get(member_id) or StreamsMember(member_id)
