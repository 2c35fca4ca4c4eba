"""Fetches whole batches of many partitions: the consumer side of a mirror.

A `SourceReader` has one connection to each leader of the source. `poll` does three things:
1. It sends a Fetch request to each leader that has no request in flight.
2. It waits until a leader has answered.
3. It sends the next request to this leader, and then returns the batches of the response. So the source can
   prepare the next response while the mirror writes these batches to the target.

The size of a response is limited, and a broker fills a response in the order of the partitions in the request.
After `poll` has received batches of a partition, it moves this partition to the end of the next request. So a
partition with many records does not block the other partitions.

A `SourceReader` returns the same records as a consumer with the isolation level `read_committed`. It skips transaction
markers, and the records of aborted transactions.
"""

from __future__ import annotations

import select
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.metadata import Cluster, Node
from hmb.mirror.copying import SourceBatch
from hmb.protocol.enums import IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import LAST_FETCH_VERSION_OF_NAMES, FetchRequest, FetchResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import Record, iter_batches
from hmb.records.aborted import AbortedTransactions

PARTITION_BYTES = 1024 * 1024  # the limit for the data of one partition in a response
RESPONSE_BYTES = 8 * PARTITION_BYTES  # With one response in use and one in flight, the mirror needs about 30 MB.

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


class Fetched(NamedTuple):
    """A partition's batches, the next offset to fetch, and the partition's last stable offset."""

    batches: list[SourceBatch]
    next_offset: int
    end: int


@dataclass(slots=True)
class _Leader:
    """A source broker, and the partitions that it leads, in their order in the next Fetch request."""

    connection: Connection
    partitions: list[TopicPartition] = field(default_factory=list)
    is_asked: bool = False  # whether a Fetch request is in flight


class SourceReader:
    """Reads the batches of some partitions. `positions` maps each partition to the next offset to read."""

    def __init__(self, cluster: Cluster, positions: Mapping[TopicPartition, int]) -> None:
        self._cluster = cluster
        self.positions = dict(positions)
        self._leaders: dict[Node, _Leader] = {}
        for partition in positions:
            node = cluster.leader(partition)
            if node not in self._leaders:
                self._leaders[node] = _Leader(cluster.connect(node))
            self._leaders[node].partitions.append(partition)

    def poll(self, timeout: float) -> dict[TopicPartition, Fetched | KafkaError]:
        """Return the next batches of some partitions. If no leader responds within `timeout` seconds, return {}.

        If a partition has an error, the result contains the error instead of batches. Later calls no longer fetch
        this partition. Raises ConnectionFailed if the connection to a leader fails, and KafkaError if a leader
        refuses the whole request.
        """
        for leader in self._leaders.values():
            self._ask(leader, timeout)
        asked = {leader.connection.fileno(): leader for leader in self._leaders.values() if leader.is_asked}
        ready = [leader for leader in asked.values() if leader.connection.has_response]
        if not ready:
            readable, _, _ = select.select(list(asked), (), (), timeout)
            ready = [asked[descriptor] for descriptor in readable]
        found: dict[TopicPartition, Fetched | KafkaError] = {}
        for leader in ready:
            response: FetchResponse = leader.connection.receive()
            leader.is_asked = False
            if response.error_code:
                raise response_error(leader.connection.address, response.error_code)
            for topic in response.responses:
                for data in topic.partitions:
                    partition = TopicPartition(topic.topic, data.partition_index)
                    found[partition] = self._take(leader, partition, data)
            self._ask(leader, timeout)
        return found

    def close(self) -> None:
        for leader in self._leaders.values():
            leader.connection.close()

    def _take(self, leader: _Leader, partition: TopicPartition, data: PartitionData) -> Fetched | KafkaError:
        if data.error_code:
            leader.partitions.remove(partition)
            return response_error(partition, data.error_code)
        fetched = _fetched(data, self.positions[partition])
        self.positions[partition] = fetched.next_offset
        if fetched.batches:  # In the next request, this partition comes after the other partitions.
            leader.partitions.remove(partition)
            leader.partitions.append(partition)
        return fetched

    def _ask(self, leader: _Leader, max_wait: float) -> None:
        if leader.is_asked or not leader.partitions:
            return
        topics: list[FetchRequest.FetchTopic] = []
        for partition in leader.partitions:
            wanted = FetchRequest.FetchTopic.FetchPartition(
                partition=partition.partition,
                fetch_offset=self.positions[partition],
                partition_max_bytes=PARTITION_BYTES,
            )
            topics.append(FetchRequest.FetchTopic(topic=partition.topic, partitions=[wanted]))
        request = FetchRequest(
            max_wait_ms=int(max_wait * 1000),
            min_bytes=1,
            max_bytes=RESPONSE_BYTES,
            isolation_level=IsolationLevel.READ_COMMITTED,
            topics=topics,
        )
        leader.connection.post(request, leader.connection.version_of(FetchRequest, LAST_FETCH_VERSION_OF_NAMES))
        leader.is_asked = True


def _fetched(data: PartitionData, position: int) -> Fetched:
    """Return the committed batches of one partition in a Fetch response, without batches that end before `position`."""
    transactions = data.aborted_transactions or ()
    aborted = AbortedTransactions((it.producer_id, it.first_offset) for it in transactions)
    batches = []
    next_offset = position
    for batch in iter_batches(data.records if isinstance(data.records, memoryview) else b""):
        is_aborted = aborted.covers(batch)
        if batch.last_offset < position:
            continue
        next_offset = batch.last_offset + 1
        if not is_aborted and not batch.is_control:
            batches.append(SourceBatch(batch, position))
    return Fetched(batches, next_offset, max(data.last_stable_offset, next_offset))


def read_records(cluster: Cluster, partition: TopicPartition, first: int, end: int) -> Generator[Record, None, None]:
    """Yield the committed records of a partition from the offset `first` to the offset `end` - 1.

    Raises KafkaError if the partition cannot be read.
    """
    reader = SourceReader(cluster, {partition: first})
    try:
        while reader.positions[partition] < end:
            fetched = reader.poll(1.0).get(partition)
            if isinstance(fetched, KafkaError):
                raise fetched
            if fetched is not None:
                for source in fetched.batches:
                    yield from _up_to(end, source.records())
    finally:
        reader.close()


def _up_to(end: int, records: Iterable[Record]) -> Iterator[Record]:
    return (record for record in records if record.offset < end)


def is_missing(error: KafkaError) -> bool:
    """Return whether the error means that the topic or the partition no longer exists."""
    return error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
