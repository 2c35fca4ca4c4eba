"""The producer side of a mirror: sends whole batches to the target, and commits the positions there.

The *position* of a partition is the source offset of the next record to copy. The mirror has a consumer group
at the target, the *mirror's group*. About once a second, the mirror commits its positions as offsets of this
group, with or without transactions:
- Without transactions, the mirror commits only the positions. After a crash, the copy can contain records after
  the last committed position. At its next start, the mirror compares these records with the source (see
  `resuming`).
- With transactions, each transaction contains batches and positions. The target commits both or neither. After
  a crash, the copy contains no committed records after the last committed position.

Each batch has sequence numbers (KIP-98), even if the mirror uses no transactions. The target can therefore
recognize a batch that arrives twice. But a broker remembers only the last five batches of each producer in a
partition. So the mirror never has more than five batches of a partition in flight, that is, sent but not yet
acknowledged (MAX_IN_FLIGHT).

Kafka has two versions of transactions (KIP-890), and a mirror uses version 1. In version 1, a producer sends an
AddPartitionsToTxn request before it writes to new partitions in a transaction. In version 2, it does not need
this request. For a mirror, version 2 would save little time, because a mirror sends this request only about
once a second.

Version 2 of transactions has a disadvantage. At the end of a transaction, the cluster writes a *marker* into
each partition of the transaction. Until all markers are written, a Kafka broker can refuse a batch of the
next transaction. The mirror would then have to send this batch and all later batches again.

In version 1 of transactions, the mirror sends AddPartitionsToTxn before the batches. If a marker of the
previous transaction is missing, the request fails. The mirror then repeats only this request, not the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest

from hmb.client.admin import Admin, raised
from hmb.client.backoff import RETRY_PAUSE
from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.group.interface import OffsetAndMetadata
from hmb.client.metadata import Node
from hmb.client.producing.idempotence import NEWEST_PRODUCE, Idempotence
from hmb.client.producing.transactions.manager import TransactionManager
from hmb.client.producing.transactions.requests import VERSION_1
from hmb.mirror.copying import CopiedBatch, SourceBatch, copied
from hmb.mirror.translation import CopiedRun
from hmb.protocol.enums import MAX_IN_FLIGHT, Acks
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import BatchNumbers, ProducerIdAndEpoch, increment_sequence

TRANSACTION_TIMEOUT = RETRY_FOR = 60.0  # seconds

OnWritten = Callable[[TopicPartition, CopiedRun, int], None]
OneRound = dict[TopicPartition, CopiedBatch]  # at most one batch of each partition: the content of one request


class TargetWriter:
    """Writes batches to the target cluster, and commits the mirror's positions there.

    All methods take partitions of the target, and not partitions of the source. For example, `east.orders-0` is the
    target's copy of the partition `orders-0` from the source cluster `east`.
    """

    def __init__(self, admin: Admin, group: str, *, transactional: bool) -> None:
        self._admin, self._group = admin, group
        self._connections: dict[Node, Connection] = {}
        self._idempotence = Idempotence(required=True)
        self._sequences: dict[TopicPartition, int] = {}
        self._transactions: TransactionManager | None = None
        if transactional:
            times = (TRANSACTION_TIMEOUT, RETRY_FOR, RETRY_PAUSE)
            self._transactions = TransactionManager(admin.cluster, group, *times, newest_version=VERSION_1)
            self._transactions.initialize()
        self._is_in_transaction = False

    @property
    def is_transactional(self) -> bool:
        return self._transactions is not None

    def write(self, batches: Mapping[TopicPartition, list[SourceBatch]], on_written: OnWritten) -> None:
        """Write batches to the target, and wait until all in-sync replicas have stored them.

        A batch contains one or more *runs*. The records of a run have consecutive offsets at the source. After the
        target has written a batch, the method calls `on_written` for each of its runs. The arguments are the partition,
        the run, and the run's approximate size in bytes.

        Raises KafkaError or ConnectionFailed if the target fails to write a batch.
        """
        if self._transactions is not None:
            if not self._is_in_transaction:
                self._transactions.begin()
                self._is_in_transaction = True
            self._transactions.add_partitions(batches)
        numbered = [[(partition, it) for it in self._copied(partition, its)] for partition, its in batches.items()]
        rounds = [dict(filter(None, each)) for each in zip_longest(*numbered)]
        for first in range(0, len(rounds), MAX_IN_FLIGHT):
            self._write_rounds(rounds[first : first + MAX_IN_FLIGHT], on_written)

    def commit(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit the positions. With transactions, commit them together with the records of the open transaction."""
        if self._transactions is None:
            for answer in self._admin.alter_group_offsets(self._group, positions).values():
                raised(answer)
            return
        if not self._is_in_transaction:
            self._transactions.begin()
        self._transactions.send_offsets(positions, self._group)
        self._transactions.commit(lambda: None)  # No wait is necessary, because `write` has waited for all batches.
        self._is_in_transaction = False

    def close(self) -> None:
        """Close all connections.

        If a transaction is still open, the target aborts it after its timeout, or when the mirror starts again.
        """
        for connection in self._connections.values():
            connection.close()
        if self._transactions is not None:
            self._transactions.close()

    def _copied(self, partition: TopicPartition, batches: list[SourceBatch]) -> list[CopiedBatch]:
        """Return the batches that the mirror sends to one partition, with their sequence numbers."""
        producer_id, epoch = self._producer(partition)
        found = []
        for batch in batches:
            sequence = self._sequences.get(partition, 0)
            it = copied(batch, BatchNumbers(producer_id, epoch, sequence), transactional=self.is_transactional)
            if it is not None:
                found.append(it)
                self._sequences[partition] = increment_sequence(sequence, it.records)
        return found

    def _producer(self, partition: TopicPartition) -> ProducerIdAndEpoch:
        guarantee = self._transactions or self._idempotence
        producer = guarantee.producer_id_and_epoch(self._connection(partition))
        assert producer is not None
        return producer

    def _connection(self, partition: TopicPartition) -> Connection:
        node = self._admin.cluster.leader(partition)
        if node not in self._connections:
            self._connections[node] = self._admin.cluster.connect(node)
        return self._connections[node]

    def _write_rounds(self, rounds: list[OneRound], on_written: OnWritten) -> None:
        """Send the requests of all rounds, and only then wait for the responses.

        A round contains at most one batch of each partition. For each round, the writer groups the batches by the
        leaders of their partitions, and sends one request to each leader.
        """
        sent: dict[Connection, list[OneRound]] = {}
        for each in rounds:
            by_leader: dict[Connection, OneRound] = {}
            for partition, batch in each.items():
                by_leader.setdefault(self._connection(partition), {})[partition] = batch
            for connection, batches in by_leader.items():
                sent.setdefault(connection, []).append(batches)
        for connection, requests in sent.items():
            version = connection.version_of(ProduceRequest, NEWEST_PRODUCE)
            connection.post_all([self._request(batches) for batches in requests], version)
        for connection, requests in sent.items():
            responses: list[ProduceResponse] = [connection.receive() for _ in requests]
            for batches, response in zip(requests, responses, strict=True):
                _handle(batches, response, on_written)

    def _request(self, batches: OneRound) -> ProduceRequest:
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        for (name, number), batch in batches.items():
            topic = topics.setdefault(name, ProduceRequest.TopicProduceData(name=name))
            topic.partition_data.append(topic.PartitionProduceData(index=number, records=memoryview(batch.data)))
        return ProduceRequest(
            transactional_id=self._group if self.is_transactional else None,
            acks=Acks.ALL,
            timeout_ms=int(RETRY_FOR * 1000),
            topic_data=list(topics.values()),
        )


def _handle(batches: OneRound, response: ProduceResponse, on_written: OnWritten) -> None:
    for topic in response.responses:
        for answer in topic.partition_responses:
            partition = TopicPartition(topic.name, answer.index)
            if answer.error_code:
                raise response_error(partition, answer.error_code, answer.error_message)
            if answer.base_offset < 0:
                what = f"{partition}: the target did not return the offset of a batch"
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what)
            batch = batches[partition]
            for run in batch.source_runs:
                size = len(batch.data) * run.length // batch.records
                on_written(partition, run._replace(target=answer.base_offset + run.target), size)
