"""The consumer: iterates over the records of topics, from where one says to where one says.

A consumer without a group: it reads all partitions that it is told, remembers its own positions and commits nothing.
The order within a partition is that of the log; partitions are mixed as their records arrive.

    offset    "earliest", "latest", an offset, or a negative number: so many before the end
    until     "end": stop at what was the end when the consumer was made; None: wait for more, for ever

Positions are settled when the consumer is made, so what is produced after that is seen with "latest" too. The first
contact is tried once; later failures are retried for `retry_for` seconds. An error of one partition is raised when the
records that came before it, of all partitions, have been handed out.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal, Self

from hmb.client.fetcher import ConsumerRecord, Fetched, Fetcher, Position
from hmb.client.metadata import Cluster, TopicPartition
from hmb.client.offsets import EARLIEST, LATEST, list_offsets
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topic_names import check_topic_name
from hmb.records.record import MAX_INT64

Offset = Literal["earliest", "latest"] | int

__all__ = ["Consumer", "ConsumerRecord"]


def check_offset(offset: object) -> None:
    """ValueError for what is no `Offset`."""
    if offset in ("earliest", "latest"):
        return
    if isinstance(offset, bool) or not isinstance(offset, int) or not -MAX_INT64 <= offset <= MAX_INT64:
        raise ValueError(f'an offset is "earliest", "latest" or a whole number of 64 bits, not {offset!r}')


class Consumer:
    """Reads topics; belongs to one thread. Times are in seconds, but for `max_wait_ms`."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        *topics: str,
        offset: Offset = "earliest",
        until: Literal["end"] | None = None,
        partitions: Iterable[int] | None = None,
        client_id: str = "hmb",
        max_wait_ms: int = 500,
        max_bytes: int = 16 * 1024 * 1024,
        max_partition_bytes: int = 1024 * 1024,
        request_timeout: float = 30.0,
        retry_for: float = 30.0,
    ) -> None:
        if not topics:
            raise ValueError("name at least one topic")
        for topic in topics:
            check_topic_name(topic)
        check_offset(offset)
        if until not in ("end", None):
            raise ValueError(f'until is "end" or None, not {until!r}')
        self._cluster = Cluster(bootstrap_servers, client_id, request_timeout)
        wanted = None if partitions is None else list(partitions)
        chosen = [chosen for topic in topics for chosen in self._partitions(topic, wanted, retry_for)]
        starts = self._starts(chosen, offset)
        ends = self._ends(chosen, starts) if until == "end" else {}
        positions = [Position(it, starts[it], ends.get(it), max_partition_bytes) for it in chosen]
        self._fetcher = Fetcher(
            self._cluster, positions, max_wait_ms=max_wait_ms, max_bytes=max_bytes, retry_for=retry_for
        )
        self._fetched: deque[Fetched] = deque()
        self._damage: dict[TopicPartition, KafkaError] = {}  # where a partition cannot be read any further

    @property
    def at_end(self) -> bool:
        """Whether every partition was read up to the end that its broker named; never without `until`."""
        return self._fetcher.at_end and not self._fetched and not self._damage

    def poll(self, timeout: float = 0.0) -> list[ConsumerRecord]:
        """The next records; an empty list at the end, or when none came in about `timeout` seconds (see `at_end`)."""
        deadline = time.monotonic() + timeout
        while not self.at_end:
            self._fetch()
            records = [record for batch in self._decoded() for record in batch]
            if records or time.monotonic() >= deadline:
                return records
        return []

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while not self.at_end:
            self._fetch()
            for batch in self._decoded():
                yield from batch
        self.close()  # nothing is left to do

    def close(self) -> None:
        self._fetched.clear()
        self._fetcher.close()
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _fetch(self) -> None:
        if not self._fetched:
            for error in self._damage.values():
                raise error
            self._fetched.extend(self._fetcher.fetch())

    def _decoded(self) -> Iterator[list[ConsumerRecord]]:
        """What was fetched, batch by batch; nothing of a partition from its damage on, for that is raised later."""
        while self._fetched:
            fetched = self._fetched.popleft()
            if fetched.partition in self._damage:
                continue
            try:
                records = fetched.records()
            except KafkaError as error:
                self._damage[fetched.partition] = error
            else:
                yield records

    def _partitions(self, name: str, wanted: list[int] | None, retry_for: float) -> list[TopicPartition]:
        """The topic's partitions, or the ones wanted; one that was created just now gets time for its leaders."""
        deadline = time.monotonic() + retry_for
        while True:
            try:
                leaders = self._cluster.topic(name).leaders
                if None not in leaders.values() or time.monotonic() >= deadline:
                    break
            except KafkaError as error:
                if error.code is not ErrorCode.LEADER_NOT_AVAILABLE or time.monotonic() >= deadline:
                    raise
            time.sleep(0.1)
        for number in wanted or ():
            if number not in leaders:
                what = f"topic {name!r} has no partition {number}, only {len(leaders)} from 0 on"
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
        return [TopicPartition(name, number) for number in (leaders if wanted is None else wanted)]

    def _starts(self, partitions: list[TopicPartition], offset: Offset) -> dict[TopicPartition, int]:
        if offset == "earliest":
            return list_offsets(self._cluster, partitions, EARLIEST)
        if offset == "latest":
            return list_offsets(self._cluster, partitions, LATEST)
        if offset >= 0:
            return dict.fromkeys(partitions, offset)
        first = list_offsets(self._cluster, partitions, EARLIEST)
        latest = list_offsets(self._cluster, partitions, LATEST)
        return {partition: max(first[partition], latest[partition] + offset) for partition in partitions}

    def _ends(self, partitions: list[TopicPartition], starts: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        latest = list_offsets(self._cluster, partitions, LATEST)
        for partition, end in latest.items():
            if starts[partition] > end:
                latest[partition] = starts[partition] + 1  # this is no end: ask, and be told that it is not there
        return latest
