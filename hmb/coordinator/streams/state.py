"""The members, epochs, target and topology of a streams group, and the records that store them.

The base class `ModernState` is the same as for a KIP-848 group. Each method that changes the state creates the record
of its change, and `finish` puts all records of one request into one `Write`. If a write fails, the state is restored
from the stored records (`RecordedSteps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hmb.coordinator.journal.records import Key, KeyAndValue, Keys
from hmb.coordinator.modern.records import encode
from hmb.coordinator.modern.state import FIRST_EPOCH, ModernState
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

    - `validated_epoch` is the epoch of the topology if all its topics exist, and otherwise INCOMPLETE.
    - `configs` contains the settings that the last target depends on.
    """

    record_keys: ClassVar[Keys] = {key.record_type: key for key in STREAMS_KEYS}
    member_keys = MEMBER_KEYS

    def _forget(self) -> None:
        super()._forget()
        self.assignment_epoch = FIRST_EPOCH  # A member that waits for the first target needs an epoch above 0.
        self.topology: Topology | None = None
        self.validated_epoch = 0
        self.configs: dict[str, str] = {}

    # -- changes

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

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones that delete all records of a group without members."""
        keys = (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupMetadataKey, StreamsGroupTopologyKey)
        return [encode(key(group_id=self.group_id), None) for key in keys]

    # -- the journal

    def _member_record(self, member: StreamsMember) -> KeyAndValue:
        return member_record(self.group_id, member)

    def _current_record(self, member: StreamsMember) -> KeyAndValue:
        return current_record(self.group_id, member)

    def _target_record(self, member_id: str, target: Tasks) -> KeyAndValue:
        return target_record(self.group_id, member_id, target)

    def _assignment_epoch_record(self, epoch: int, timestamp: int) -> KeyAndValue:
        value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
        return encode(StreamsGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)

    def _restore(self, key: Key, value: Any) -> None:
        match key:
            case StreamsGroupMetadataKey():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
                self.validated_epoch = value.validated_topology_epoch
                self.configs = {each.key: each.value for each in value.last_assignment_configs or ()}
            case StreamsGroupMemberMetadataKey():
                self._put(with_metadata(self._member(key.member_id), value))
            case StreamsGroupCurrentMemberAssignmentKey():
                self._put(with_current(self._member(key.member_id), value))
            case StreamsGroupTargetAssignmentMetadataKey():
                self.assignment_epoch, self.assignment_timestamp = value.assignment_epoch, value.assignment_timestamp
            case StreamsGroupTargetAssignmentMemberKey():
                self.targets[key.member_id] = Tasks(tasks_in(value.active_tasks), tasks_in(value.standby_tasks))
            case StreamsGroupTopologyKey():
                self.topology = value

    def _member(self, member_id: str) -> StreamsMember:
        return self.members.get(member_id) or StreamsMember(member_id)
