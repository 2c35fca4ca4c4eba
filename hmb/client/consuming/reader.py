"""The partition reader fetches records for a consumer, and stores the consumer's position in each partition.

The reader reads a partition from the call of `add` until the call of `remove`. It stores a `Position` for each
partition. A new position contains only a start, for example "latest". The method `find_offsets` replaces the
start by an offset. The fetcher then fetches batches from this offset, and the buffer stores them until `poll`
returns the records:
    add -> Position with a start -> find_offsets -> Position with an offset -> fetch -> RecordBuffer -> poll
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hmb.client.arguments import check_partition
from hmb.client.backoff import RETRY_PAUSE
from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.buffer import BatchDecoder, RecordBuffer
from hmb.client.consuming.fetcher import Fetcher, FetchSettings
from hmb.client.consuming.partition_errors import is_final, is_unknown_topic
from hmb.client.consuming.positions import Position
from hmb.client.metadata import Cluster
from hmb.client.offsets import Offset, Until, list_offsets, resolve
from hmb.client.retries import with_retries
from hmb.protocol.enums import IsolationLevel
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

LOGGER = logging.getLogger(__name__)

T = TypeVar("T")
# A function that takes partitions, and returns their committed offsets.
Committed = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]]


@dataclass(frozen=True, slots=True)
class ConsumerMetrics:
    """Counts of what a consumer has fetched and returned since it was created.

    - `fetches` is the number of Fetch responses, including empty responses.
    - `fetched_bytes` is the size of all fetched batches before decompression.
    - `records` is the number of records that the application has received.
    - `failures` is the number of errors of partitions, including temporary errors.
    """

    fetches: int
    fetched_bytes: int
    records: int
    failures: int


class AssignmentReader:
    """Reads the partitions that were added with `add`. Each partition has its own position."""

    def __init__(
        self, cluster: Cluster, settings: FetchSettings, decoder: BatchDecoder, max_partition_bytes: int, until: Until
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._max_partition_bytes = max_partition_bytes
        self._until = until
        self.positions: dict[TopicPartition, Position] = {}
        self.buffer = RecordBuffer(decoder)
        self.fetcher = Fetcher(cluster, self.positions, settings)
        self.committed: Committed = lambda partitions: {}  # `GroupReading` replaces this function.

    @property
    def at_end(self) -> bool:
        """True if the application has received all records up to the end that the setting `until` defines."""
        return self._until is not None and all(position.at_end for position in self.positions.values())

    def has_records(self, decoded: bool = True) -> bool:
        """Return whether the buffer contains a record for the application.

        The buffer contains fetched batches. If `decoded` is true, this method decodes batches until it finds a record
        for the application. If `decoded` is false, it decodes nothing, and returns whether the buffer contains any
        batch.
        """
        return self.buffer.has_records() if decoded else self.buffer.has_batches()

    def fetch(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for a response of a leader. Add the batches in the response to the buffer."""
        for fetched in self.fetcher.fetch(timeout):
            self.buffer.add(fetched)

    def metrics(self) -> ConsumerMetrics:
        fetcher = self.fetcher
        return ConsumerMetrics(fetcher.fetches, fetcher.fetched_bytes, self.buffer.returned, fetcher.errors.count)

    def add(self, starts: Mapping[TopicPartition, Offset], *, in_group: bool = False) -> None:
        """Start to read these partitions. `starts` maps each partition to the start of reading, such as "latest".

        If `in_group` is true and the group has committed an offset for a partition, reading begins at the committed
        offset instead.
        """
        for partition, start in starts.items():
            self.remove([partition])
            self.positions[partition] = Position(partition, self._max_partition_bytes, start, in_group=in_group)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions, and remove their records from the buffer."""
        for partition in partitions:
            position = self.positions.pop(partition, None)
            if position is not None:
                position.is_removed = True
                self.buffer.discard(position)

    def position(self, partition: TopicPartition) -> Position:
        """Return the position of a partition.

        Raises ValueError if the consumer does not read this partition. Raises TypeError if the argument is not a
        `TopicPartition`.
        """
        check_partition(partition)
        try:
            return self.positions[partition]
        except KeyError:
            read = ", ".join(map(str, sorted(self.positions))) or "nothing"
            raise ValueError(f"{partition} is not assigned to this consumer, which reads {read}") from None

    def seek(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Set the position of each partition in `offsets`, and remove the partition's records from the buffer."""
        for partition in offsets:
            self.position(partition)
        level = self._settings.isolation_level
        found = self.with_retries(lambda: resolve(self._cluster, offsets, level), {it.topic for it in offsets})
        for partition, offset in found.items():
            position = self.positions[partition]
            self.buffer.discard(position)
            position.move_to(offset)

    def pause(self, partition: TopicPartition) -> None:
        """Stop returning records of this partition, until `resume` is called.

        The method removes the records of the partition from the buffer. After `resume`, the reader fetches them again.
        """
        position = self.position(partition)
        if not position.is_paused:
            position.is_paused = True
            if position.fetch_offset != position.consumed:
                self.buffer.fetch_again(position)

    def resume(self, partition: TopicPartition) -> None:
        self.position(partition).is_paused = False

    def position_with_offset(self, partition: TopicPartition) -> Position:
        """Return the position of a partition. If the offset where reading begins is unknown, find this offset first."""
        position = self.position(partition)
        while not position.has_offset:
            self.find_offsets()
            self._raise_first([position])
            time.sleep(max(0.0, position.retry_at - time.monotonic()) if position.failing_since else 0.0)
        return position

    def lag(self, partition: TopicPartition) -> int | None:
        return self.position(partition).lag(self._settings.isolation_level == IsolationLevel.READ_COMMITTED)

    def list_offsets(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        level, topics = self._settings.isolation_level, {partition.topic for partition in partitions}
        return self.with_retries(lambda: list_offsets(self._cluster, partitions, timestamp, level), topics)

    def add_with_offsets(self, starts: Mapping[TopicPartition, Offset]) -> None:
        """Start to read partitions. `starts` maps each partition to its start, such as "latest".

        Before the method returns, it asks the brokers which offset each start means. For "latest", this offset is the
        end of the log. The method `add` does not wait for these offsets.
        """
        self.add(starts)
        level = self._settings.isolation_level
        self.with_retries(lambda: self._set_offsets(resolve(self._cluster, starts, level)), {it.topic for it in starts})

    def find_offsets(self) -> None:
        """Find the offset at which reading begins, for each position that has no offset yet.

        If the position's field `in_group` is true, and the group has committed an offset for the partition, reading
        begins at the committed offset.

        Otherwise, the position's field `start` decides where reading begins. For example, if `start` is "latest", the
        method asks a broker for the end of the log. With `read_committed`, it asks for the last stable offset.
        """
        now = time.monotonic()
        waiting = [
            it for it in self.positions.values() if it.start is not None and it.error is None and it.retry_at <= now
        ]
        in_group = [it.partition for it in waiting if it.in_group]
        try:
            if in_group:
                self._set_offsets(self.committed(in_group))
        except (ConnectionFailed, KafkaError) as error:
            for position in waiting:
                self.fetcher.errors.failed(position, error)
            return
        self._resolve_starts([position for position in waiting if position.start is not None])

    def _resolve_starts(self, waiting: list[Position]) -> None:
        starts = {it.partition: it.start for it in waiting if it.start is not None}
        if not starts:
            return
        try:
            self._set_offsets(resolve(self._cluster, starts, self._settings.isolation_level))
        except (ConnectionFailed, KafkaError) as error:
            if len(waiting) == 1:
                self.fetcher.errors.failed(waiting[0], error)
                return
            for position in waiting:  # The error of one partition must not stop the others.
                self._resolve_starts([position])

    def _set_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the position in each partition to the partition's offset in the dict `offsets`.

        If the setting `until` is not None, the method also sets the `end` of each position. The consumer reads only
        offsets below `end`.
        """
        if self._until is not None:
            wanted: Offset = "latest" if self._until == "end" else self._until
            ends = resolve(self._cluster, dict.fromkeys(offsets, wanted), self._settings.isolation_level)
            for partition, end in ends.items():
                # If the start is after the log's end, the reader would fetch nothing and report no error. Therefore
                # `end` becomes the start plus 1. The reader then fetches one offset, and the broker returns an error.
                is_after_end = self._until == "end" and offsets[partition] > end
                self.positions[partition].end = offsets[partition] + 1 if is_after_end else end
        for partition, offset in offsets.items():
            self.positions[partition].move_to(offset)

    def with_retries(self, action: Callable[[], T], topics: Collection[str]) -> T:
        """Call `action`, and return its result. After a temporary error, call `action` again.

        The cause can be outdated metadata. Before each retry, the method therefore marks the metadata of `topics` as
        outdated, so that the client requests it again. The retries end after `retry_for` seconds.
        """

        def retry_for(error: ConnectionFailed | KafkaError) -> float:
            is_hopeless = is_final(error) or not self._cluster.was_reached or is_unknown_topic(error)
            return 0.0 if is_hopeless else self._settings.retry_for

        def wait(error: ConnectionFailed | KafkaError) -> None:
            for topic in topics:
                self._cluster.forget(topic)
            time.sleep(RETRY_PAUSE)

        return with_retries(action, retry_for, wait)

    def raise_errors(self) -> None:
        """Raise the error of a partition, if a partition has one. Ignore partitions that are paused.

        If the error is temporary, the reader fetches the partition again at the next `poll`.
        """
        self._raise_first(it for it in self.positions.values() if not it.is_paused)

    def _raise_first(self, positions: Iterable[Position]) -> None:
        error = next((it.error for it in positions if it.error is not None), None)
        if error is None:
            return
        if isinstance(error, ConnectionFailed | KafkaError) and not is_final(error):
            for position in self.positions.values():  # Several partitions may have the same error. Raise it only once.
                if str(position.error) == str(error):
                    position.error = position.failing_since = position.missing_since = None
        raise error.with_traceback(None)  # Otherwise the traceback would grow at each raise.

    def remove_deleted(self) -> None:
        """Stop reading the partitions of topics that were deleted."""
        deleted = [it.partition for it in self.positions.values() if it.error and is_unknown_topic(it.error)]
        for partition in deleted:
            LOGGER.warning("%s was deleted", partition)
        self.remove(deleted)

    def close(self) -> None:
        self.fetcher.close()
        for position in self.positions.values():
            self.buffer.discard(position)
