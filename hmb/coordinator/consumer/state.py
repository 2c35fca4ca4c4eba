"""The members, epochs and target assignment of a KIP-848 group, and the records that store them.

`ConsumerState` is a `ModernState` (modern/state.py) that also stores static members, the owner of each
partition, and the topics that each regular expression matches.

Source: KIP-848; Kafka's `ConsumerGroup`.
"""

from __future__ import annotations

from typing import Any

from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.consumer.records import (
    current_value,
    metadata_value,
    target_of,
    target_value,
    with_current,
    with_metadata,
)
from hmb.coordinator.journal.records import (
    KEYS,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    Key,
    KeyAndValue,
)
from hmb.coordinator.modern.state import ModernState, RecordTypes
from hmb.protocol.topics import PartitionId


class ConsumerState(ModernState[ConsumerMember, frozenset[PartitionId]]):
    """The members, the epochs and the target assignment of one KIP-848 group.

    - `instances` maps each static member's group instance id to its member id. The member id is a key of `members`.
    - `_owners` maps each partition that has an owner to the owner's member id. A member that must give up a
      partition stays the owner until the member confirms that it no longer reads the partition.
    """

    record_types = RecordTypes(
        keys=KEYS,
        group=ConsumerGroupMetadataKey,
        member=ConsumerGroupMemberMetadataKey,
        target_metadata=ConsumerGroupTargetAssignmentMetadataKey,
        target=ConsumerGroupTargetAssignmentMemberKey,
        current=ConsumerGroupCurrentMemberAssignmentKey,
        new_member=ConsumerMember,
        metadata_value=metadata_value,
        with_metadata=with_metadata,
        current_value=current_value,
        with_current=with_current,
        target_value=target_value,
        target_of=target_of,
    )

    def _forget(self) -> None:
        super()._forget()
        self.instances: dict[str, str] = {}  # group instance id -> member id
        self.regexes: dict[str, frozenset[str]] = {}  # expression -> the names of the matching topics
        self._owners: dict[PartitionId, str] = {}

    def is_taken(self, partition: PartitionId) -> bool:
        return partition in self._owners

    def waits(self, member: ConsumerMember) -> bool:
        """Return whether `member` waits for another member to give up a partition.

        The target assignment of `member` contains the partition, but the other member still owns the partition.
        """
        missing = self.targets.get(member.member_id, frozenset()) - member.assigned.keys()
        return any(self.is_taken(partition) for partition in missing)

    # -- changes

    def _put(self, member: ConsumerMember) -> None:
        self._take_out(member.member_id)
        super()._put(member)
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

    def set_regex(self, regex: str, topics: frozenset[str] | None, version: int, timestamp: int) -> None:
        """Store the topics that a regular expression matches. If `topics` is None, delete the expression."""
        value = None
        if topics is None:
            del self.regexes[regex]
        else:
            self.regexes[regex] = topics
            value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp)
        self._add(ConsumerGroupRegularExpressionKey, value, regular_expression=regex)

    # -- the journal

    def _restore(self, key: Key, value: Any) -> None:
        super()._restore(key, value)
        if isinstance(key, ConsumerGroupRegularExpressionKey):
            self.regexes[key.regular_expression] = frozenset(value.topics)

    def tombstones(self) -> list[KeyAndValue]:
        return [
            self._record(ConsumerGroupTargetAssignmentMetadataKey, None),
            *(self._record(ConsumerGroupRegularExpressionKey, None, regular_expression=each) for each in self.regexes),
            # Kafka 4.0 stores a record with this key, but HMB never does. If the group has such a record from Kafka
            # 4.0, the value None deletes it.
            self._record(ConsumerGroupPartitionMetadataKey, None),
            self._record(ConsumerGroupMetadataKey, None),
        ]
