"""Reading partitions: positions, the fetcher that moves them on, and what it brought.

This is a consumer without its surroundings: it knows neither of groups nor of subscriptions, only of partitions that it
was given and that are taken from it again.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hmb.client.arguments import check_partition
from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.buffer import Decoding, InHand
from hmb.client.consuming.fetcher import RETRY_PAUSE, Fetcher, FetchSettings, is_final
from hmb.client.consuming.positions import Position
from hmb.client.metadata import Cluster
from hmb.client.offsets import Offset, Until, list_offsets, resolve
from hmb.protocol.enums import IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

log = logging.getLogger(__name__)

T = TypeVar("T")
Committed = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]]  # where it has committed


@dataclass(frozen=True, slots=True)
class ConsumerMetrics:
    """Counts since the consumer was made."""

    fetches: int  # answers, with or without records
    fetched_bytes: int  # of batches, as they came: compressed or not
    records: int  # handed out
    failures: int  # of fetches: tried again, or raised


class Reader:
    """Reads the partitions that were added, from their positions on."""

    def __init__(
        self, cluster: Cluster, settings: FetchSettings, decoding: Decoding, max_partition_bytes: int, until: Until
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._max_partition_bytes = max_partition_bytes
        self._until = until
        self.positions: dict[TopicPartition, Position] = {}
        self.hand = InHand(decoding)
        self.fetcher = Fetcher(cluster, self.positions, settings)
        self.committed: Committed = lambda partitions: {}  # of a group, which puts its own here

    @property
    def at_end(self) -> bool:
        """Whether everything was handed out up to where it was to be read."""
        return self._until is not None and all(position.at_end for position in self.positions.values())

    def has_records(self, decoded: bool = True) -> bool:
        """Whether something is in hand: records, or with not `decoded` batches that may hold some."""
        return self.hand.has_records() if decoded else self.hand.has_batches()

    def fetch(self, timeout: float) -> None:
        """Take the next answer in hand, if one comes in time."""
        for fetched in self.fetcher.fetch(timeout):
            self.hand.add(fetched)

    def metrics(self) -> ConsumerMetrics:
        fetcher, hand = self.fetcher, self.hand
        return ConsumerMetrics(fetcher.fetches, fetcher.fetched_bytes, hand.handed_out, fetcher.failures)

    def add(self, wishes: Mapping[TopicPartition, Offset], *, in_group: bool = False) -> None:
        """Begin with these partitions: in a group, where it has committed, else where it is wished."""
        for partition, wish in wishes.items():
            self.remove([partition])
            self.positions[partition] = Position(partition, self._max_partition_bytes, wish, in_group=in_group)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these, and forget what is in hand of them."""
        for partition in partitions:
            position = self.positions.pop(partition, None)
            if position is not None:
                position.is_dropped = True
                self.hand.drop(position)

    def position(self, partition: TopicPartition) -> Position:
        """ValueError with what is read instead, if the partition is not; TypeError for what is none."""
        check_partition(partition)
        try:
            return self.positions[partition]
        except KeyError:
            read = ", ".join(map(str, sorted(self.positions))) or "nothing"
            raise ValueError(f"{partition} is not assigned to this consumer, which reads {read}") from None

    def seek(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Go on from there, at once: what is in hand of these partitions is forgotten."""
        for partition in offsets:
            self.position(partition)
        level = self._settings.isolation_level
        found = self.patiently(lambda: resolve(self._cluster, offsets, level), {it.topic for it in offsets})
        for partition, offset in found.items():
            position = self.positions[partition]
            self.hand.drop(position)
            position.move_to(offset)

    def pause(self, partition: TopicPartition) -> None:
        """Hand out nothing of it; what is in hand is forgotten and fetched again when it goes on."""
        position = self.position(partition)
        if not position.is_paused:
            position.is_paused = True
            if position.fetched != position.consumed:
                self.hand.fetch_again(position)

    def resume(self, partition: TopicPartition) -> None:
        self.position(partition).is_paused = False

    def settled(self, partition: TopicPartition) -> Position:
        """The same, when it is known where it begins."""
        position = self.position(partition)
        while not position.has_offset:
            self.settle()
            self._raise_first([position])
            time.sleep(max(0.0, position.retry_at - time.monotonic()) if position.failing_since else 0.0)
        return position

    def lag(self, partition: TopicPartition) -> int | None:
        return self.position(partition).lag(self._settings.isolation_level == IsolationLevel.READ_COMMITTED)

    def list_offsets(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        level, topics = self._settings.isolation_level, {partition.topic for partition in partitions}
        return self.patiently(lambda: list_offsets(self._cluster, partitions, timestamp, level), topics)

    def settle_now(self, wishes: Mapping[TopicPartition, Offset]) -> None:
        """Add these partitions and wait until it is known where they begin."""
        self.add(wishes)
        level = self._settings.isolation_level
        self.patiently(lambda: self._place(resolve(self._cluster, wishes, level)), {it.topic for it in wishes})

    def settle(self) -> None:
        """Find the offsets of new positions: what the group has committed, and for all others what was wished."""
        now = time.monotonic()
        waiting = [
            it for it in self.positions.values() if it.wish is not None and it.error is None and it.retry_at <= now
        ]
        asked = [it.partition for it in waiting if it.in_group]
        try:
            if asked:
                self._place(self.committed(asked))
        except (ConnectionFailed, KafkaError) as error:
            for position in waiting:
                self.fetcher.failed(position, error)
            return
        self._settle([position for position in waiting if position.wish is not None])

    def _settle(self, waiting: list[Position]) -> None:
        wishes = {it.partition: it.wish for it in waiting if it.wish is not None}
        if not wishes:
            return
        try:
            self._place(resolve(self._cluster, wishes, self._settings.isolation_level))
        except (ConnectionFailed, KafkaError) as error:
            if len(waiting) == 1:
                self.fetcher.failed(waiting[0], error)
                return
            for position in waiting:  # one that fails should not keep the others
                self._settle([position])

    def _place(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the offsets where positions begin, and find those where they are to end."""
        if self._until is not None:
            wanted: Offset = "latest" if self._until == "end" else self._until
            ends = resolve(self._cluster, dict.fromkeys(offsets, wanted), self._settings.isolation_level)
            for partition, end in ends.items():
                # An offset behind the end is not there: to ask for it is to be told so.
                behind = self._until == "end" and offsets[partition] > end
                self.positions[partition].end = offsets[partition] + 1 if behind else end
        for partition, offset in offsets.items():
            self.positions[partition].move_to(offset)

    def patiently(self, action: Callable[[], T], topics: Collection[str]) -> T:
        """Ask the brokers something, again and again where time may help."""
        deadline = time.monotonic() + self._settings.retry_for
        while True:
            try:
                return action()
            except (ConnectionFailed, KafkaError) as error:
                is_hopeless = is_final(error) or not self._cluster.was_reached or _is_unknown(error)
                if is_hopeless or time.monotonic() >= deadline:
                    raise
            for topic in topics:
                self._cluster.forget(topic)
            time.sleep(RETRY_PAUSE)

    def raise_errors(self) -> None:
        """What went wrong in a partition that is not paused; what time may heal is tried again after that."""
        self._raise_first(it for it in self.positions.values() if not it.is_paused)

    def _raise_first(self, positions: Iterable[Position]) -> None:
        error = next((it.error for it in positions if it.error is not None), None)
        if error is None:
            return
        if isinstance(error, ConnectionFailed | KafkaError) and not is_final(error):
            for position in self.positions.values():  # one word about what all partitions of a topic or a broker have
                if str(position.error) == str(error):
                    position.error = position.failing_since = position.gone_since = None
        raise error.with_traceback(None)  # or that would grow with each time

    def drop_gone(self) -> None:
        """Stop reading topics that have been deleted."""
        gone = [it.partition for it in self.positions.values() if it.error is not None and _is_unknown(it.error)]
        for partition in gone:
            log.warning("%s was deleted", partition)
        self.remove(gone)

    def close(self) -> None:
        self.fetcher.close()
        for position in self.positions.values():
            self.hand.drop(position)


def _is_unknown(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
