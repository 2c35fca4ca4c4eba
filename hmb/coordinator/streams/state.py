"""The members, epochs, target assignment and topology of a streams group, and the records that store them.

`ModernState` (modern/state.py) stores what all modern groups have, such as members and epochs. `StreamsState`
adds the topology, and the settings that the assignor uses for the newest group epoch.
"""

from __future__ import annotations

from typing import Any

from hmb.coordinator.journal.records import Key, KeyAndValue
from hmb.coordinator.modern.state import FIRST_EPOCH, ModernState, RecordTypes
from hmb.coordinator.streams.member import StreamsMember
from hmb.coordinator.streams.member_records import (
    current_value,
    metadata_value,
    target_of,
    target_value,
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
    StreamsGroupTopologyKey,
)
from hmb.coordinator.streams.tasks import Tasks
from hmb.coordinator.streams.topology import Topology

INCOMPLETE = -1  # the value of `validated_epoch` while some topics of the topology are missing


class StreamsState(ModernState[StreamsMember, Tasks]):
    """The state of one streams group: its members, epochs, target assignment and topology.

    - `validated_epoch` is the topology epoch (the version number of the topology) if the last check of the topics
      found no problem. If topics are missing or have a wrong number of partitions, it is INCOMPLETE.
    - `configs` contains the settings of the assignor for the newest group epoch. If these settings change, a new
      group epoch begins.

    `increase_epoch` creates a group record, which contains `validated_epoch` and `configs`.
    """

    record_types = RecordTypes(
        keys={key.record_type: key for key in STREAMS_KEYS},
        group=StreamsGroupMetadataKey,
        member=StreamsGroupMemberMetadataKey,
        target_metadata=StreamsGroupTargetAssignmentMetadataKey,
        target=StreamsGroupTargetAssignmentMemberKey,
        current=StreamsGroupCurrentMemberAssignmentKey,
        new_member=StreamsMember,
        metadata_value=metadata_value,
        with_metadata=with_metadata,
        current_value=current_value,
        with_current=with_current,
        target_value=target_value,
        target_of=target_of,
    )

    def _forget(self) -> None:
        super()._forget()
        # Members enter this epoch before the group has its first target assignment. The epoch is 1, because a heartbeat
        # with epoch 0 means that the member joins.
        self.assignment_epoch = FIRST_EPOCH
        self.topology: Topology | None = None
        self.validated_epoch = 0
        self.configs: dict[str, str] = {}

    def set_topology(self, topology: Topology) -> None:
        self.topology = topology
        self._add(StreamsGroupTopologyKey, topology)

    # -- the journal

    def _group_value(self) -> StreamsGroupMetadataValue:
        kind = StreamsGroupMetadataValue.LastAssignmentConfig
        return StreamsGroupMetadataValue(
            epoch=self.epoch,
            metadata_hash=self.metadata_hash,
            validated_topology_epoch=self.validated_epoch,
            last_assignment_configs=[kind(key=key, value=value) for key, value in sorted(self.configs.items())],
        )

    def _restore(self, key: Key, value: Any) -> None:
        super()._restore(key, value)
        match key:
            case StreamsGroupMetadataKey():
                self.validated_epoch = value.validated_topology_epoch
                self.configs = {each.key: each.value for each in value.last_assignment_configs or ()}
            case StreamsGroupTopologyKey():
                self.topology = value

    def tombstones(self) -> list[KeyAndValue]:
        kinds = (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupMetadataKey, StreamsGroupTopologyKey)
        return [self._record(kind, None) for kind in kinds]
