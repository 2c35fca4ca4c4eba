"""The consumer: hands out the records of topics, from where one says to where one says.

    offset    "earliest", "latest", an offset, -n (n before the end), FromStart(n), AtTime(ms)
    until     "end": stop at what is the end when reading begins; an offset; AtTime(ms); None: wait for more, for ever

It comes in three kinds, by what says which partitions it reads:

- with topics, or a pattern of their names, it reads all their partitions; what is made later is found, too;
- with a `group` the members of the group share the partitions, and the group remembers how far it has come: what was
  committed is where it goes on, and `offset` holds only where nothing was;
- with `assign` it reads exactly the partitions that it is told.

The order within a partition is that of the log; partitions are mixed as their records arrive. Nothing is handed out
twice and nothing left out; an error of one partition is raised when all records in hand, of all partitions, have been
handed out. If it is one that time cannot heal, a damaged batch for example, each further poll raises it, until the
program seeks past it, pauses the partition or gives it up.

Without a group positions are settled when the consumer is made, so what is produced after that is seen with "latest"
too. The first contact is tried once; later failures are retried for `retry_for` seconds.

A consumer belongs to one thread. It has none of its own but for its group's heartbeats: it works while it is polled,
and the brokers prepare the next records meanwhile (`fetcher`).

    consumer -> reader -> fetcher      asks the leaders for batches
                       -> in_hand      makes records of them, or Arrow columns (`arrow`)
             -> group_reading          what the group says (`membership`), and what is committed
             -> subscription           which topics there are
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self, Unpack, cast

from hmb.client.arguments import list_of_partitions
from hmb.client.consuming.assigned import AssignedPartitions
from hmb.client.consuming.buffer import Decoding
from hmb.client.consuming.fetcher import FetchSettings
from hmb.client.consuming.group_reading import Callbacks, GroupReading, Offsets
from hmb.client.consuming.guard import Guard
from hmb.client.consuming.reader import ConsumerMetrics, Reader
from hmb.client.consuming.settings import ConsumerSettings, Pattern
from hmb.client.consuming.subscription import Discovery, Subscription
from hmb.client.group.interface import CommitCallback, GroupMetadata, MemberSettings, OffsetAndMetadata
from hmb.client.metadata import Cluster
from hmb.client.offsets import (
    ISOLATION_LEVELS,
    Offset,
    check_isolation_level,
    check_offset,
    check_until,
)
from hmb.client.settings import shows_settings, with_defaults
from hmb.protocol.topics import TopicPartition
from hmb.records.consumer_record import ConsumerRecord

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Consumer", "ConsumerRecord"]

LONGEST_WAIT = 0.5  # seconds, then one looks what the group and the metadata say


class Consumer(AssignedPartitions):
    """Reads the records of topics. A consumer belongs to one thread.

    `ConsumerSettings` declares the keyword arguments. `help(hmb.Consumer)` shows them with their defaults.
    """

    @shows_settings(ConsumerSettings)
    def __init__(
        self, bootstrap_servers: str | Iterable[str], *topics: str, **settings: Unpack[ConsumerSettings]
    ) -> None:
        """Read `topics`, or topics by `pattern`; without both, `subscribe` or `assign` says later what is read.

        Raises TypeError and ValueError for settings that cannot be, and ConnectionFailed if no broker answers.
        """
        chosen = cast(ConsumerSettings, with_defaults(ConsumerSettings, settings, "Consumer"))
        _check(chosen)
        subscription = Subscription.to(topics, chosen["pattern"], chosen["exclude"])
        self._is_closing = self._was_at_end = False
        self._offset, self._until, self._numbers = chosen["offset"], chosen["until"], chosen["partitions"]
        self._max_age, self._limit = chosen["metadata_max_age"], chosen["max_poll_records"]
        self._wait_for_topics = chosen["wait_for_topics"]
        self._cluster = Cluster(
            bootstrap_servers, chosen["client_id"], chosen["request_timeout"], metadata_max_age=self._max_age
        )
        super().__init__(_reader(self._cluster, chosen), Guard("the consumer"))
        self._discovery: Discovery | None = None  # None: nothing is subscribed to
        self._group = _group_reading(self._cluster, self._reader, chosen)
        if subscription:
            try:
                self._subscribe(subscription)
            except BaseException:
                self.close()
                raise

    # -- what is read

    def subscribe(self, *topics: str, pattern: Pattern | None = None, exclude: Pattern | None = None) -> None:
        """Read these topics in place of what was read, or those whose names match `pattern` and not `exclude`."""
        with self._guard:
            subscription = Subscription.to(topics, pattern, exclude)
            if not subscription:
                raise ValueError("name at least one topic, or a pattern")
            self._subscribe(subscription)

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, Offset]) -> None:
        """Read exactly these partitions, from these offsets, in place of what was read.

        Where no offset is given: in a group from what it has committed, and else from the consumer's `offset`. Who
        assigns by hand is no member of the group, but commits for it.
        """
        with self._guard:
            given = isinstance(partitions, Mapping)
            chosen = list_of_partitions(partitions)
            wishes = dict(partitions) if isinstance(partitions, Mapping) else dict.fromkeys(chosen, self._offset)
            for wish in wishes.values():
                check_offset(wish)
            self.unsubscribe()
            if self._group is not None:
                self._group.has_assignment = True
            if self._group is not None and not given:
                self._reader.add(wishes, in_group=True)
            else:
                self._reader.settle_now(wishes)

    def unsubscribe(self) -> None:
        """Read nothing any more; in a group: commit, and leave."""
        with self._guard:
            self._discovery = None
            if self._group is not None:
                self._group.leave()
            self._reader.remove(list(self._reader.positions))

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to; of a pattern, those that matched last."""
        return frozenset() if self._discovery is None else frozenset(self._discovery.names)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self._reader.positions)

    # -- records

    @property
    def at_end(self) -> bool:
        """Whether every partition was read up to where it was to be read; never without `until`."""
        if self._until is None or self._guard.is_closed:
            return self._was_at_end
        return (self._group is None or self._group.has_assignment) and self._reader.at_end

    def poll(self, timeout: float = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """The next records; an empty list at the end, or when none came in about `timeout` seconds (see `at_end`).

        At most `max_records`, or the consumer's `max_poll_records`.
        """
        if not self._bring(timeout):
            return []
        with self._guard:
            return self._reader.hand.take(self._limit if max_records is None else max_records)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Record by record, to the end if there is one, where the consumer is closed; the position moves with each."""
        while not self.at_end:
            if self._bring(LONGEST_WAIT):
                yield from self._reader.hand.one_by_one(self._limit)
        self.close()

    def poll_arrow(self, timeout: float = 0.0) -> "pyarrow.RecordBatch | None":
        """The next records of one partition as Arrow columns (see `arrow`); None where `poll` would give none.

        No Python object is made for a record, so there is nothing to deserialize. Needs `pip install 'hmb[arrow]'`.
        """
        from hmb.client.consuming.arrow import take_batch

        if self._reader.hand.decoding.deserializes:
            raise ValueError("Arrow columns hold bytes: make the consumer without deserializers")
        deadline = time.monotonic() + timeout
        while self._bring(max(0.0, deadline - time.monotonic()), decoded=False):
            with self._guard:
                batch = take_batch(self._reader.hand)
            if batch is not None:  # what was in hand may have been markers of transactions
                return batch
        return None

    def arrow_batches(self) -> "Iterator[pyarrow.RecordBatch]":
        """Arrow batches as `poll_arrow` gives them, to the end if there is one, where the consumer is closed."""
        while not self.at_end:
            batch = self.poll_arrow(LONGEST_WAIT)
            if batch is not None:
                yield batch
        self.close()

    # -- what the group remembers

    def commit(self, offsets: Offsets | None = None) -> None:
        """Have the group remember these next offsets, or all positions: of all records handed out. Waits for it."""
        with self._guard:
            self._in_group().commit(offsets)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """The same without waiting; `callback` is called by a later poll, with the offsets, and the error or None."""
        with self._guard:
            self._in_group().commit_async(offsets, callback)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, of all partitions assigned if none is given; None where nothing."""
        with self._guard:
            return self._in_group().offsets.committed(partitions or tuple(self._reader.positions))

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group; for `Producer.send_offsets_to_transaction`."""
        return self._in_group().metadata

    def metrics(self) -> ConsumerMetrics:
        """Counts since the consumer was made."""
        return self._reader.metrics()

    # -- the end

    def close(self, timeout: float | None = None) -> None:
        """Commit and leave the group, if there is one, and close all connections; to be called as often as one likes.

        Waits for the coordinator's answers for `timeout` seconds, or for `request_timeout`.
        """
        if self._guard.is_closed:
            return
        with self._guard:
            if self._is_closing:
                return
            self._was_at_end = self.at_end
            self._is_closing = True
            try:
                if self._group is not None:
                    self._group.leave(timeout)  # on_revoked may still commit
            finally:
                self._guard.is_closed = True
                self._reader.close()
                self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _in_group(self) -> GroupReading:
        if self._group is None:
            raise ValueError("without a group nothing is committed: make the consumer with group=...")
        return self._group

    def _subscribe(self, subscription: Subscription) -> None:
        """Find the topics first: if one is missing, all stays as it was."""
        discovery = Discovery(
            self._cluster, subscription, self._numbers, self._max_age, wait_for_topics=self._wait_for_topics
        )
        found = self._reader.patiently(discovery.look, subscription.topics)
        if self._group is None or self._discovery is None:
            self.unsubscribe()
        self._discovery = discovery
        if self._group is None:
            self._reader.settle_now(dict.fromkeys(found, self._offset))
        else:
            self._group.subscribe(discovery.names)

    def _bring(self, timeout: float, *, decoded: bool = True) -> bool:
        """See to it that there are records in hand, if some come in time; errors when all before them are gone."""
        if self.at_end:
            return False
        deadline = time.monotonic() + timeout
        with self._guard:
            while True:
                self._follow_group(deadline)
                if self._reader.has_records(decoded):
                    return True
                self._look_around()
                self._reader.raise_errors()
                left = deadline - time.monotonic()
                if self.at_end:
                    return False
                self._reader.fetch(max(0.0, min(left, LONGEST_WAIT)))
                if left <= 0:
                    return self._reader.has_records(decoded)

    def _follow_group(self, deadline: float) -> None:
        """Do what the group wants; without partitions there is nothing to do but to wait for it."""
        if self._discovery is None and not self._reader.positions:
            raise ValueError("nothing to read: subscribe() to topics or assign() partitions first")
        if self._group is not None:
            self._group.poll(0.0 if self._reader.positions else max(0.0, deadline - time.monotonic()))

    def _look_around(self) -> None:
        """Which topics and partitions there are, and where new ones begin."""
        if self._discovery is not None:
            before = self._discovery.names
            news = self._discovery.news()
            names = self._discovery.names
            if self._group is not None and names != before:
                self._group.subscribe(names, created=names - before if self._until is None else ())
            if self._group is None and self._until is None:  # (a topic that one answer left out is none of them)
                self._reader.add({it: "earliest" for it in news if it not in self._reader.positions})
            if self._discovery.is_by_pattern:
                self._reader.drop_gone()
        self._reader.settle()


def _check(settings: ConsumerSettings) -> None:
    check_offset(settings["offset"])
    check_until(settings["until"])
    check_isolation_level(settings["isolation_level"])
    if settings["max_poll_records"] < 1:
        raise ValueError(f"max_poll_records is at least 1, not {settings['max_poll_records']}")
    if settings["group"] is not None and settings["partitions"] is not None:
        raise ValueError("in a group the group says which partitions: assign() reads some by hand")


def _reader(cluster: Cluster, settings: ConsumerSettings) -> Reader:
    offset = settings["offset"]
    fetching = FetchSettings(
        max_wait_ms=settings["max_wait_ms"],
        min_bytes=settings["min_bytes"],
        max_bytes=settings["max_bytes"],
        isolation_level=ISOLATION_LEVELS[settings["isolation_level"]],
        reset=offset if settings["group"] is not None and not isinstance(offset, int) else None,
        request_timeout=settings["request_timeout"],
        retry_for=settings["retry_for"],
    )
    decoding = Decoding(settings["check_crcs"], settings["key_deserializer"], settings["value_deserializer"])
    return Reader(cluster, fetching, decoding, settings["max_partition_bytes"], settings["until"])


def _group_reading(cluster: Cluster, reader: Reader, settings: ConsumerSettings) -> GroupReading | None:
    """Return the membership in the group of the settings, or None without a group."""
    if settings["group"] is None:
        return None
    group = MemberSettings(
        group_id=settings["group"],
        group_instance_id=settings["group_instance_id"],
        group_protocol=settings["group_protocol"],
        assignors=tuple(settings["assignors"]),
        remote_assignor=settings["remote_assignor"],
        session_timeout=settings["session_timeout"],
        heartbeat_interval=settings["heartbeat_interval"],
        max_poll_interval=settings["max_poll_interval"],
        request_timeout=settings["request_timeout"],
        metadata_max_age=settings["metadata_max_age"],
        require_stable=settings["isolation_level"] == "read_committed",
    )
    callbacks = Callbacks(settings["on_assigned"], settings["on_revoked"], settings["on_lost"])
    interval = settings["auto_commit_interval"] if settings["auto_commit"] else None
    return GroupReading(cluster, reader, group, settings["offset"], callbacks, interval)
