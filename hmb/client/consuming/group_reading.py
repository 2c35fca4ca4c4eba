"""Reading as a member of a group: partitions from the group, committed offsets, and automatic commits.

The membership (`hmb.client.group.membership`) knows which partitions belong to this consumer. `GroupReading` is its
listener: it adds and removes partitions of the consumer's reader. New partitions begin at the offsets that the group
has committed. Before partitions are given up, their positions are committed, and the next owner continues there. A
commit saves the offset of the first record that was *not* returned to the application yet.

*Automatic commits* run inside `poll`, every `auto_commit_interval` seconds. They assume that the application has
processed all records of earlier polls. After a crash, some records are read twice and none is left out (at least once).

For example, a poll returns the records 0 to 9 and the next poll commits offset 10. If the consumer crashes before that,
the next owner begins at offset 0 again.
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
from hmb.client.group.interface import CommitCallback, GroupMetadata, MemberSettings, OffsetAndMetadata
from hmb.client.group.membership import GroupMembership, group_offsets, join_group
from hmb.client.metadata import Cluster
from hmb.client.offsets import Offset
from hmb.protocol.enums import GroupType
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

LOGGER = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The application's functions for a rebalance. `poll` and `close` call them.

    Without `on_lost`, `on_revoked` is called for lost partitions, too.
    """

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None


class GroupReading:
    """The link between a consumer's reader and its group. It implements `RebalanceListener`."""

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
        self._interval = auto_commit_interval  # None: only the application commits
        self._commit_at = time.monotonic() + (auto_commit_interval or 0.0)
        self._saved: dict[TopicPartition, int] = {}  # the positions that automatic commits have saved
        self._membership: GroupMembership | None = None
        reader.committed = self.committed
        self._offsets_without_membership: CommittedOffsets | None = None  # used if `assign` chose the partitions
        self._is_leaving = False
        self._close_timeout: float | None = None  # seconds for the last commit; None means `request_timeout`
        self.has_assignment = False  # whether the group or `assign` has chosen partitions

    @property
    def offsets(self) -> CommittedOffsets:
        """The committed offsets of the group. After `assign`, the consumer commits without a membership."""
        if self._membership is not None:
            return self._membership.offsets
        if self._offsets_without_membership is None:
            self._offsets_without_membership = group_offsets(self._cluster, self._settings)
        return self._offsets_without_membership

    @property
    def metadata(self) -> GroupMetadata:
        """The identity of this consumer in its group."""
        return self.offsets.metadata if self._membership is None else self._membership.metadata

    def subscribe(self, topics: Collection[str], *, created: Collection[str] = ()) -> None:
        """Subscribe to these topics.

        The consumer reads topics in `created` from their start, because all their records are newer than the consumer.
        """
        self._created |= set(created)
        if self._membership is None:
            self._membership = join_group(self._cluster, self._settings, self)
        self._membership.subscribe(topics)

    def poll(self, timeout: float) -> None:
        """Take part in a rebalance for at most `timeout` seconds, and commit if the interval has passed."""
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
        # The coordinator of a KIP-848 group answers before it has computed an assignment. The first assignment may be
        # empty.
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
        """Return the committed offsets of these partitions. The method does not retry, because a poll must not wait."""
        found = self.offsets.committed(partitions, timeout=0.0)
        return {partition: it.offset for partition, it in found.items() if it is not None}

    def leave(self, timeout: float | None = None) -> None:
        """Commit, give up all partitions and leave the group. The commit may take `timeout` seconds."""
        self._is_leaving, self._close_timeout = True, timeout
        try:
            if self._membership is not None:
                self._membership.close(timeout)  # This call leads to `on_revoked`.
            else:
                self._commit_before_leaving(self._reader.positions)
        finally:
            if self._offsets_without_membership is not None:
                self._offsets_without_membership.close(timeout)
            self._membership = self._offsets_without_membership = None
            self.has_assignment = self._is_leaving = False

    def _with_metadata(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets as `OffsetAndMetadata`. None stands for the positions of all partitions."""
        if offsets is None:
            positions = self._reader.positions.values()
            return {it.partition: OffsetAndMetadata(it.consumed) for it in positions if it.has_offset}
        return {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }

    def _unsaved(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions that automatic commits have not saved yet."""
        positions = [self._reader.positions[it] for it in partitions if it in self._reader.positions]
        return {
            it.partition: OffsetAndMetadata(it.consumed)
            for it in positions
            if it.has_offset and it.consumed != self._saved.get(it.partition)
        }

    def _commit_before_leaving(self, partitions: Iterable[TopicPartition]) -> None:
        """Save the positions of partitions that are given up.

        A failed commit is only logged, because its consequence is that some records are read twice.
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
