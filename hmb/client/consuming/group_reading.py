"""Reading as a member of a group: which partitions, from where, and what is committed when.

The membership (`membership`) says what belongs to this consumer; here that becomes reading. For new partitions it
begins where the group has committed, and before partitions are given up their positions are committed: the member that
gets them goes on from there. What a commit saves is the *next* offset, that of the first record not handed out yet.

*Auto commit* saves the positions every `auto_commit_interval` seconds, from within `poll`: all records of earlier polls
count as done then. So after a crash some records are read twice, none is left out (at least once).
"""

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.reader import Reader
from hmb.client.consuming.settings import Callback
from hmb.client.group.driver import group_offsets, join_group
from hmb.client.group.interface import CommitCallback, GroupOffsets, GroupSettings, Membership, OffsetAndMetadata
from hmb.client.metadata import Cluster
from hmb.client.offsets import Offset
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What the program wants to be told; each is called from within `poll` or `close`."""

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None  # None: on_revoked is told


class GroupReading:
    """The reader of a group: a `RebalanceListener`, and the group's offsets."""

    def __init__(
        self, cluster: Cluster, reader: Reader, settings: GroupSettings, offset: Offset, callbacks: Callbacks,
        auto_commit_interval: float | None,
    ) -> None:  # fmt: skip
        self._cluster, self._reader, self._settings = cluster, reader, settings
        self._offset = offset
        self._created: set[str] = set()  # topics that did not exist when this consumer started
        self._callbacks = callbacks
        self._interval = auto_commit_interval  # None: the program commits
        self._commit_at = time.monotonic() + (auto_commit_interval or 0.0)
        self._saved: dict[TopicPartition, int] = {}  # what was committed last
        self._membership: Membership | None = None
        reader.committed = self.committed
        self._alone: GroupOffsets | None = None  # of who is no member: its partitions were assigned by hand
        self._patience: float | None = None  # seconds for the last commit; None: as long as it takes
        self.is_assigned = False  # whether the group has ever said what is ours

    @property
    def offsets(self) -> GroupOffsets:
        if self._membership is not None:
            return self._membership
        if self._alone is None:
            self._alone = group_offsets(self._cluster, self._settings)
        return self._alone

    def subscribe(self, topics: Collection[str], *, created: Collection[str] = ()) -> None:
        """Read these topics. Those in `created` are read from their start: all their records are newer than this."""
        self._created |= set(created)
        if self._membership is None:
            self._membership = join_group(self._cluster, self._settings, self)
        self._membership.subscribe(topics)

    def poll(self, timeout: float) -> None:
        """Do what the group asks for, and commit if it is time."""
        self.offsets.poll(timeout)
        if self._interval is not None and time.monotonic() >= self._commit_at:
            self._commit_at = time.monotonic() + self._interval
            news = self._news(self._reader.positions)
            if news:
                self._saved.update({partition: it.offset for partition, it in news.items()})
                self.offsets.commit_async(news, self._auto_committed)

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        # A coordinator of KIP-848 groups answers at once and computes later: nothing, at first, is no answer yet.
        self.is_assigned = bool(partitions) or self._settings.group_protocol == "classic" or self.is_assigned
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
            self._forget(partitions)

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        try:
            callback = self._callbacks.on_lost or self._callbacks.on_revoked
            if callback is not None:
                callback(sorted(partitions))
        finally:
            self._forget(partitions)

    def commit(self, offsets: Offsets | None) -> None:
        self.offsets.commit(self._given(offsets))

    def commit_async(self, offsets: Offsets | None, callback: CommitCallback | None) -> None:
        self.offsets.commit_async(self._given(offsets), callback)

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the group has committed something; asked once, for whoever polls has no time to wait."""
        found = self.offsets.committed(partitions, timeout=0.0)
        return {partition: it.offset for partition, it in found.items() if it is not None}

    def leave(self, timeout: float | None = None) -> None:
        """Commit, give the partitions back, and leave the group; waits for a commit so many seconds at most."""
        self._patience = timeout
        try:
            if self._membership is not None:
                self._membership.close(timeout)  # this calls on_revoked
            else:
                self._commit_before_leaving(self._reader.positions)
        finally:
            if self._alone is not None:
                self._alone.close(timeout)
            self._membership = self._alone = None
            self.is_assigned = False

    def _given(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets as the group wants them; all positions if none are given."""
        if offsets is None:
            positions = self._reader.positions.values()
            return {it.partition: OffsetAndMetadata(it.consumed) for it in positions if it.is_settled}
        return {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }

    def _news(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Positions that auto commit has not saved yet."""
        positions = [self._reader.positions[it] for it in partitions if it in self._reader.positions]
        return {
            it.partition: OffsetAndMetadata(it.consumed)
            for it in positions
            if it.is_settled and it.consumed != self._saved.get(it.partition)
        }

    def _commit_before_leaving(self, partitions: Iterable[TopicPartition]) -> None:
        """Without it some records are read twice, which is no reason to stop giving up partitions."""
        news = self._news(partitions) if self._interval is not None else {}
        if not news:
            return
        if self._patience is not None:
            self._commit_within(news, self._patience)
            return
        try:
            self.offsets.commit(news)
        except (ConnectionFailed, KafkaError) as error:
            log.warning("the positions of %s were not committed: %s", ", ".join(map(str, news)), error)

    def _commit_within(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float) -> None:
        """Commit, and wait for the answer so long only."""
        deadline = time.monotonic() + timeout
        answers: list[Exception | None] = []
        self.offsets.commit_async(offsets, lambda _, error: answers.append(error))
        while not answers and time.monotonic() < deadline:
            time.sleep(0.01)
            self.offsets.poll(0.0)
        if answers != [None]:
            log.warning("the positions were not committed: %s", answers[0] if answers else "no answer in time")

    def _auto_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None) -> None:
        if error is not None:
            log.warning("the positions were not committed, for now: %s", error)
            for partition in offsets:
                self._saved.pop(partition, None)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        self._reader.remove(partitions)
        for partition in partitions:
            self._saved.pop(partition, None)
