"""The public class `Consumer`: it reads the records of partitions, and returns them to the application.

Two settings determine which records a consumer reads from each partition. `offset` is the first record, and
`until` is the place where the consumer stops. They can have these values:
    offset    "earliest", "latest", an offset, -n (n offsets before the end), FromStart(n) or AtTime(ms)
    until     an offset, AtTime(ms), or "end": the end that the log has when the consumer begins to read the
              partition. If `until` is None, the consumer never stops.

A consumer finds its partitions in one of three ways:
- With topic names or a pattern, the consumer reads all partitions of these topics. It also finds topics and partitions
  that are created later.
- With a `group`, all members of the group share the partitions. A consumer begins at the offsets that the group has
  committed. The setting `offset` applies only if the group has committed no offset for a partition, or if the log no
  longer contains the committed offset.
- With `assign`, the consumer reads exactly the partitions that the application chooses.

For example, `Consumer("localhost:9092", "weather", until="end")` reads all records that are in the topic "weather" when
the consumer starts.

The consumer returns each record once. The records of one partition come in the order of the log, but records of
other partitions can come between them. If a partition has an error, `poll` first returns all records that the
consumer already has in memory. This can take several calls of `poll`. The call after them raises the error. An
error can be permanent, for example if a batch is damaged. Every later `poll` then raises the error again, until
the application pauses the partition, or seeks to an offset after the damaged batch.

When the application creates a consumer without a group, the constructor asks the brokers for the start offsets.
If the setting `offset` is "latest", the application therefore receives all records that are written after the
constructor has returned.

If the consumer's first request fails, the constructor raises the error at once, because the address of the
broker is probably wrong. If a later request fails temporarily, the consumer repeats it for up to `retry_for`
seconds.

Only one thread may use a consumer. The consumer receives records only during calls such as `poll`. If the
consumer is a member of a group, it starts a second thread, which sends the heartbeats.

The next drawing shows the objects of a consumer. Each arrow shows a call. For example, the `AssignmentReader`
calls the `Fetcher`:
    Consumer -> AssignmentReader -> Fetcher        fetches batches from the leaders
                                 -> RecordBuffer   decodes batches to records or to Arrow columns (`arrow`)
             -> AssignedPartitions                  the methods for positions, for example `seek` and `pause`
             -> GroupReading                       partitions and committed offsets of the group
             -> Discovery                          topics and partitions of the subscription
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, Unpack, cast

from hmb.client.arguments import list_of_partitions
from hmb.client.consuming.assigned import AssignedPartitions
from hmb.client.consuming.building import assignment_reader, check_settings, group_reading
from hmb.client.consuming.group_reading import GroupReading
from hmb.client.consuming.reader import ConsumerMetrics
from hmb.client.consuming.settings import ConsumerSettings, Pattern
from hmb.client.consuming.single_thread import SingleThreadCheck
from hmb.client.consuming.subscription import Discovery, Subscription
from hmb.client.delegation import delegated
from hmb.client.group.interface import CommitCallback, GroupMetadata, OffsetAndMetadata, Offsets
from hmb.client.metadata import Cluster
from hmb.client.offsets import Offset, check_offset
from hmb.client.settings import shows_settings, with_defaults
from hmb.protocol.topics import TopicPartition
from hmb.records.consumer_record import ConsumerRecord

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Consumer", "ConsumerRecord"]

GROUP_CHECK_INTERVAL = 0.5  # seconds between two checks of the group and the metadata while `poll` waits for records


class Consumer:
    """A client that reads the records of topics. Only one thread may use a consumer.

    `ConsumerSettings` declares the keyword arguments. `help(hmb.Consumer)` shows them with their defaults.
    """

    @shows_settings(ConsumerSettings)
    def __init__(
        self, bootstrap_servers: str | Iterable[str], *topics: str, **settings: Unpack[ConsumerSettings]
    ) -> None:
        """Subscribe to `topics`, or to the topics that match the setting `pattern`.

        Without topics and pattern, the application must call `subscribe` or `assign` later. Raises TypeError or
        ValueError if a setting is not valid, and ConnectionFailed if no broker answers.
        """
        chosen = cast(ConsumerSettings, with_defaults(ConsumerSettings, settings, "Consumer"))
        check_settings(chosen)
        subscription = Subscription.to(topics, chosen["pattern"], chosen["exclude"])
        self._is_closing = self._was_at_end = False
        self._offset, self._until, self._numbers = chosen["offset"], chosen["until"], chosen["partitions"]
        self._max_age, self._limit = chosen["metadata_max_age"], chosen["max_poll_records"]
        self._wait_for_topics = chosen["wait_for_topics"]
        self._cluster = Cluster(
            *(bootstrap_servers, chosen["client_id"], chosen["request_timeout"]),
            metadata_max_age=self._max_age,
            security=chosen["security"],
        )
        self._reader, self._thread_check = assignment_reader(self._cluster, chosen), SingleThreadCheck("the consumer")
        self._partitions = AssignedPartitions(self._reader, self._thread_check)
        self._discovery: Discovery | None = None  # None while the consumer has no subscription
        self._group = group_reading(self._cluster, self._reader, chosen)
        if subscription:
            try:
                self._subscribe(subscription)
            except BaseException:
                self.close()
                raise

    # -- subscription and assignment

    def subscribe(self, *topics: str, pattern: Pattern | None = None, exclude: Pattern | None = None) -> None:
        """Read these topics, or all topics whose names match `pattern` and do not match `exclude`.

        The new subscription replaces the old one.
        """
        with self._thread_check:
            subscription = Subscription.to(topics, pattern, exclude)
            if not subscription:
                raise ValueError("name at least one topic, or a pattern")
            self._subscribe(subscription)

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, Offset]) -> None:
        """Read exactly these partitions. The consumer stops reading all other partitions.

        The start offset of each partition depends on the arguments of the consumer:

        - If `partitions` is a mapping, it maps each partition to its start offset.
        - Otherwise, a consumer with a `group` starts at the offset that the group has committed for the partition.
        - In all other cases, or if the group has committed no offset, the consumer starts at its setting `offset`.

        After `assign`, the consumer is not a member of the group, but it can still commit offsets for the group.
        """
        with self._thread_check:
            has_starts = isinstance(partitions, Mapping)
            chosen = list_of_partitions(partitions)
            starts = dict(partitions) if isinstance(partitions, Mapping) else dict.fromkeys(chosen, self._offset)
            for start in starts.values():
                check_offset(start)
            self.unsubscribe()
            if self._group is not None:
                self._group.has_assignment = True
            if self._group is not None and not has_starts:
                self._reader.add(starts, in_group=True)
            else:
                self._reader.add_with_offsets(starts)

    def unsubscribe(self) -> None:
        """Stop reading all partitions. A consumer with a `group` leaves the group.

        If automatic commits are enabled, the consumer first commits its positions.
        """
        with self._thread_check:
            self._discovery = None
            if self._group is not None:
                self._group.leave()
            self._reader.remove(list(self._reader.positions))

    @property
    def subscription(self) -> frozenset[str]:
        """The names of the topics in the subscription.

        If the subscription contains a pattern, the consumer looks for new topics at regular intervals. This property
        contains the names that matched the pattern at the last search.
        """
        return frozenset() if self._discovery is None else frozenset(self._discovery.names)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer reads."""
        return frozenset(self._reader.positions)

    # -- methods for positions, and for the offsets of the log

    position = delegated("_partitions", AssignedPartitions.position)
    seek = delegated("_partitions", AssignedPartitions.seek)
    seek_to_time = delegated("_partitions", AssignedPartitions.seek_to_time)
    seek_to_beginning = delegated("_partitions", AssignedPartitions.seek_to_beginning)
    seek_to_end = delegated("_partitions", AssignedPartitions.seek_to_end)
    pause = delegated("_partitions", AssignedPartitions.pause)
    resume = delegated("_partitions", AssignedPartitions.resume)
    beginning_offsets = delegated("_partitions", AssignedPartitions.beginning_offsets)
    end_offsets = delegated("_partitions", AssignedPartitions.end_offsets)
    offsets_for_time = delegated("_partitions", AssignedPartitions.offsets_for_time)
    lag = delegated("_partitions", AssignedPartitions.lag)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._partitions.paused

    # -- records

    @property
    def at_end(self) -> bool:
        """True if the consumer has read all partitions up to its setting `until`. Without `until`, always False."""
        if self._until is None or self._thread_check.is_closed:
            return self._was_at_end
        return (self._group is None or self._group.has_assignment) and self._reader.at_end

    def poll(self, timeout: float = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return the next records: at most `max_records`, or `max_poll_records` if `max_records` is None.

        The list is empty if no record has arrived within about `timeout` seconds, or if the consumer has read
        everything up to its setting `until`. Raises KafkaError or ConnectionFailed if a partition or the group has an
        error. Raises DeserializationError if a deserializer fails.
        """
        if not self._fill_buffer(timeout):
            return []
        with self._thread_check:
            return self._reader.buffer.take(self._limit if max_records is None else max_records)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield one record after the other, and close the consumer when reading ends.

        The consumer's setting `until` says where reading ends. Without `until`, reading never ends.

        The method updates the position before it yields a record. For example, when the application receives the record
        at offset 7, the position of its partition is already 8.
        """
        while not self.at_end:
            if self._fill_buffer(GROUP_CHECK_INTERVAL):
                yield from self._reader.buffer.one_by_one(self._limit)
        self.close()

    def poll_arrow(self, timeout: float = 0.0, columns: Sequence[str] | None = None) -> pyarrow.RecordBatch | None:
        """Return the next records of one partition as Arrow columns.

        Return None if no record has arrived within `timeout` seconds. `columns` contains the names of the wanted
        columns, or is None for all columns. The method creates only the wanted columns.

        The method creates no Python objects for the records, so it cannot call deserializers. Raises ValueError if the
        consumer has deserializers. The method needs pyarrow: `pip install 'hmb[arrow]'`.
        """
        from hmb.client.consuming.arrow import take_batch
        from hmb.records.fast.columns import SCHEMA

        if self._reader.buffer.decoder.deserializes:
            raise ValueError("Arrow columns hold bytes: make the consumer without deserializers")
        deadline = time.monotonic() + timeout
        while self._fill_buffer(max(0.0, deadline - time.monotonic()), decoded=False):
            with self._thread_check:
                batch = take_batch(self._reader.buffer, SCHEMA.names if columns is None else list(columns))
            if batch is not None:  # `batch` is None if it would contain only control records or aborted records.
                return batch
        return None

    def arrow_batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield records as Arrow columns, and close the consumer when reading ends (setting `until`)."""
        while not self.at_end:
            batch = self.poll_arrow(GROUP_CHECK_INTERVAL)
            if batch is not None:
                yield batch
        self.close()

    # -- committed offsets

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit these offsets, and wait for the response. Without `offsets`, commit the positions of all partitions.

        A committed offset is the offset of the first record that the application has not processed.
        """
        with self._thread_check:
            self._in_group().commit(offsets)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Send a commit without waiting for the response. A later `poll` reads the response.

        `poll` then calls `callback` with two arguments: the offsets, and the error or None.
        """
        with self._thread_check:
            self._in_group().commit_async(offsets, callback)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return each partition's committed offset, or None if the group has committed no offset for the partition.

        Without `partitions`, return the offsets of all partitions that this consumer reads.
        """
        with self._thread_check:
            return self._in_group().offsets.committed(partitions or tuple(self._reader.positions))

    @property
    def group_metadata(self) -> GroupMetadata:
        """The group id, member id and generation of this consumer, for `Producer.send_offsets_to_transaction`."""
        return self._in_group().metadata

    def metrics(self) -> ConsumerMetrics:
        """Return counts of records, bytes, fetches and failures since the consumer was created."""
        return self._reader.metrics()

    # -- closing

    def close(self, timeout: float | None = None) -> None:
        """Leave the group and close all connections. A second call does nothing.

        If automatic commits are enabled, the consumer first commits its positions. It waits at most `timeout` seconds
        for each response of the group's coordinator. The default is `request_timeout`. If the consumer reaches no
        broker, it stops trying after 0.1 s, and the positions are not committed.
        """
        if self._thread_check.is_closed:
            return
        with self._thread_check:
            if self._is_closing:
                return
            self._was_at_end = self.at_end
            self._is_closing = True
            try:
                if self._group is not None:
                    self._group.leave(timeout)  # This calls `on_revoked`, which may still commit.
            finally:
                self._thread_check.is_closed = True
                self._reader.close()
                self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _in_group(self) -> GroupReading:
        if self._group is None:
            raise ValueError("a consumer without a group cannot commit: make it with group=...")
        return self._group

    def _subscribe(self, subscription: Subscription) -> None:
        """Find the topics of a subscription, and start to read them.

        If a topic does not exist, raise an error and keep the old subscription.
        """
        discovery = Discovery(
            self._cluster, subscription, self._numbers, self._max_age, wait_for_topics=self._wait_for_topics
        )
        found = self._reader.with_retries(discovery.refresh, subscription.topics)
        if self._group is None or self._discovery is None:
            self.unsubscribe()
        self._discovery = discovery
        if self._group is None:
            self._reader.add_with_offsets(dict.fromkeys(found, self._offset))
        else:
            self._group.subscribe(discovery.names)

    def _fill_buffer(self, timeout: float, *, decoded: bool = True) -> bool:
        """Fetch until the buffer has records or `timeout` seconds have passed. Return whether the buffer has records.

        If the buffer is empty and a partition has an error, raise the error.
        """
        if self.at_end:
            return False
        deadline = time.monotonic() + timeout
        with self._thread_check:
            while True:
                self._poll_group(deadline)
                if self._reader.has_records(decoded):
                    return True
                self._update_partitions()
                self._reader.raise_errors()
                left = deadline - time.monotonic()
                if self.at_end:
                    return False
                self._reader.fetch(max(0.0, min(left, GROUP_CHECK_INTERVAL)))
                if left <= 0:
                    return self._reader.has_records(decoded)

    def _poll_group(self, deadline: float) -> None:
        """Take part in a rebalance. If the consumer has no partitions, wait for the rebalance until `deadline`."""
        if self._discovery is None and not self._reader.positions:
            raise ValueError("nothing to read: subscribe() to topics or assign() partitions first")
        if self._group is not None:
            self._group.poll(0.0 if self._reader.positions else max(0.0, deadline - time.monotonic()))

    def _update_partitions(self) -> None:
        """Add new partitions, remove the partitions of deleted topics, and find the start offsets of new partitions."""
        if self._discovery is not None:
            before = self._discovery.names
            new = self._discovery.new_partitions()
            names = self._discovery.names
            if self._group is not None and names != before:
                self._group.subscribe(names, created=names - before if self._until is None else ())
            if self._group is None and self._until is None:
                # A metadata response can lack a topic that exists. When a later response contains the topic again, its
                # partitions seem new. But the consumer has a position in each, and must not restart at "earliest".
                self._reader.add({it: "earliest" for it in new if it not in self._reader.positions})
            if self._discovery.is_by_pattern:
                self._reader.remove_deleted()
        self._reader.find_offsets()
