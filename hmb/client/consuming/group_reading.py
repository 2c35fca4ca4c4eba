"""A consumer that is a member of a group: it reads the partitions that the group assigns, and commits offsets.

A `GroupMembership` (module `hmb.client.group.membership`) receives the assignments of the group. When the group assigns
or revokes partitions, the `GroupMembership` calls methods of `GroupReading`. These methods add the partitions to the
consumer's reader, or remove them.

The consumer begins to read a new partition at the offset that the group has committed. Before the consumer gives up a
partition, it commits the position of this partition. The position is the offset of the first record that `poll` has
*not* returned yet. The next owner of the partition continues at this offset.

If *automatic commits* are enabled, `poll` commits the positions every `auto_commit_interval` seconds. It
assumes that the application has processed all records that earlier calls of `poll` returned. A consumer can
crash after it has processed some records, but before it has committed. The group then reads these records
again. So the group reads each record *at least once*.

Here is an example of a record that is read twice. A `poll` returns the records 0 to 9, and the next `poll` would commit
the offset 10. If the consumer crashes before this commit, the next owner of the partition begins at offset 0 again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.reader import AssignmentReader
from hmb.client.consuming.settings import Callback
from hmb.client.group.commits import CommittedOffsets
from hmb.client.group.interface import (
    CommitCallback,
    GroupMetadata,
    MemberSettings,
    OffsetAndMetadata,
    Offsets,
    with_metadata,
)
from hmb.client.group.membership import GroupMembership, group_offsets, join_group
from hmb.client.metadata import Cluster
from hmb.client.offsets import Offset
from hmb.protocol.enums import GroupType
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions of the application that `poll` and `close` call when the partitions of this consumer change.

    The consumer calls `on_assigned` for new partitions, and `on_revoked` for partitions that it must give up. It
    calls `on_lost` for partitions that the group has already taken away, or `on_revoked` if `on_lost` is None.
    """

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None


class GroupReading:
    """Connects a consumer's reader with a group: adds and removes partitions, and commits positions.

    This class implements the interface `RebalanceListener`. During a rebalance, the `GroupMembership` calls the
    methods of this interface.
    """

    def __init__(
        self,
        cluster: Cluster,
        reader: AssignmentReader,
        settings: MemberSettings,
        offset: Offset,
        callbacks: Callbacks,
        auto_commit_interval: float | None,
    ) -> None:
        self._cluster, self._reader, self._settings = cluster, reader, settings
        self._offset = offset
        self._created: set[str] = set()  # topics that did not exist when this consumer started
        self._callbacks = callbacks
        self._interval = auto_commit_interval  # in seconds; None if only the application commits
        self._commit_at = time.monotonic() + (auto_commit_interval or 0.0)
        self._saved: dict[TopicPartition, int] = {}  # the positions that were committed automatically
        self._membership: GroupMembership | None = None
        reader.committed = self.committed
        self._offsets_without_membership: CommittedOffsets | None = None  # the group's offsets, after `assign`
        self._is_leaving = False
        self._close_timeout: float | None = None  # seconds for the last commit; None means `request_timeout`
        self.has_assignment = False  # whether the group or `assign` has chosen partitions

    @property
    def offsets(self) -> CommittedOffsets:
        """The object that commits and fetches the offsets of the consumer's group.

        A consumer that has called `assign` is not a member of the group, but it can also use this object.
        """
        if self._membership is not None:
            return self._membership.offsets
        if self._offsets_without_membership is None:
            self._offsets_without_membership = group_offsets(self._cluster, self._settings)
        return self._offsets_without_membership

    @property
    def metadata(self) -> GroupMetadata:
        """The group id, and the member id and generation of this consumer in the group."""
        return self.offsets.metadata if self._membership is None else self._membership.metadata

    def subscribe(self, topics: Collection[str], *, created: Collection[str] = ()) -> None:
        """Subscribe to these topics. If the consumer is not a member of the group yet, join the group.

        `created` contains the topics that were created after the consumer had started. The consumer reads these topics
        from their first record.
        """
        self._created |= set(created)
        if self._membership is None:
            self._membership = join_group(self._cluster, self._settings, self)
        self._membership.subscribe(topics)

    def poll(self, timeout: float) -> None:
        """Take part in a rebalance if one is running, for at most `timeout` seconds.

        If automatic commits are enabled, the method also commits the changed positions, at most once every
        `auto_commit_interval` seconds. It does not wait for the response to the commit.
        """
        if self._membership is not None:
            self._membership.poll(timeout)
        else:
            self.offsets.poll()
        if self._interval is not None and time.monotonic() >= self._commit_at:
            self._commit_at = time.monotonic() + self._interval
            unsaved = self._unsaved(self._reader.positions)
            if unsaved:
                self._saved.update({partition: it.offset for partition, it in unsaved.items()})
                self.offsets.commit_async(unsaved, self._auto_committed)

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        # In the consumer protocol (KIP-848), the coordinator can send an empty assignment before it has computed the
        # real one. In this protocol, an empty assignment therefore does not set `has_assignment`.
        self.has_assignment |= bool(partitions) or self._settings.group_protocol == GroupType.CLASSIC
        offsets: dict[TopicPartition, Offset] = {
            partition: "earliest" if partition.topic in self._created else self._offset for partition in partitions
        }
        self._reader.add(offsets, in_group=True)
        if self._callbacks.on_assigned is not None:
            self._callbacks.on_assigned(sorted(partitions))

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        try:
            self._commit_before_leaving(partitions)
            if self._callbacks.on_revoked is not None:
                self._callbacks.on_revoked(sorted(partitions))
        finally:
            self._remove(partitions)

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        try:
            callback = self._callbacks.on_lost or self._callbacks.on_revoked
            if callback is not None:
                callback(sorted(partitions))
        finally:
            self._remove(partitions)

    def commit(self, offsets: Offsets | None) -> None:
        self.offsets.commit(self._with_metadata(offsets))

    def commit_async(self, offsets: Offsets | None, callback: CommitCallback | None) -> None:
        self.offsets.commit_async(self._with_metadata(offsets), callback)

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the committed offsets of these partitions, except partitions without a committed offset.

        `poll` calls this method, and `poll` must not wait for the coordinator. The method therefore does not repeat a
        failed request.
        """
        found = self.offsets.committed(partitions, timeout=0.0)
        return {partition: it.offset for partition, it in found.items() if it is not None}

    def leave(self, timeout: float | None = None) -> None:
        """Commit the positions, give up all partitions and leave the group.

        The commit takes at most `timeout` seconds.
        """
        self._is_leaving, self._close_timeout = True, timeout
        try:
            if self._membership is not None:
                self._membership.close(timeout)  # This calls `on_revoked`, which commits.
            else:
                self._commit_before_leaving(self._reader.positions)
        finally:
            if self._offsets_without_membership is not None:
                self._offsets_without_membership.close(timeout)
            self._membership = self._offsets_without_membership = None
            self.has_assignment = self._is_leaving = False

    def _with_metadata(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets as `OffsetAndMetadata`. If `offsets` is None, use the positions of all partitions."""
        if offsets is None:
            positions = self._reader.positions.values()
            return {it.partition: OffsetAndMetadata(it.consumed) for it in positions if it.has_offset}
        return {partition: with_metadata(offset) for partition, offset in offsets.items()}

    def _unsaved(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions that have changed since the last automatic commit."""
        positions = [self._reader.positions[it] for it in partitions if it in self._reader.positions]
        return {
            it.partition: OffsetAndMetadata(it.consumed)
            for it in positions
            if it.has_offset and it.consumed != self._saved.get(it.partition)
        }

    def _commit_before_leaving(self, partitions: Iterable[TopicPartition]) -> None:
        """If automatic commits are enabled, commit the positions of partitions that the consumer gives up.

        If the commit fails, only log the error. The next owner of the partitions then begins at older offsets, and
        reads some records that this consumer has already read.
        """
        unsaved = self._unsaved(partitions) if self._interval is not None else {}
        if not unsaved:
            return
        try:
            if self._is_leaving:
                self.offsets.commit_before_leaving(unsaved, self._close_timeout)
            else:
                self.offsets.commit(unsaved)
        except (ConnectionFailed, KafkaError) as error:
            LOGGER.warning("the positions of %s were not committed: %s", ", ".join(map(str, unsaved)), error)

    def _auto_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None) -> None:
        if error is not None:
            LOGGER.warning("the positions were not committed; the next commit includes them: %s", error)
            for partition in offsets:
                self._saved.pop(partition, None)

    def _remove(self, partitions: Iterable[TopicPartition]) -> None:
        self._reader.remove(partitions)
        for partition in partitions:
            self._saved.pop(partition, None)
