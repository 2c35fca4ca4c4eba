"""The producer's thread that talks to brokers: takes batches, sends Produce requests, reads answers, tries again.

One round: group the due batches by the leader of their partition, send each leader one request, then read the
answers. While a round is under way the next batches fill up, so that a slow broker gets few large requests and a
quick one many small ones, with nothing to tune.

A batch that meets a *retriable* error (no leader at the moment, connection broke) stays at the front of its queue
and goes again after a pause, until its delivery timeout. The broker may have written it though the answer was lost,
so a plain retry can write twice. With acks=all the producer is therefore *idempotent* where the broker offers it
(KIP-98): it asks for a producer id once and numbers the records of each partition; the broker drops what it has
already. After a batch was given up the numbers would have a gap, so the sender takes a new producer id then.
"""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from hmb.client.accumulator import Accumulator, Batch
from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node, TopicPartition
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.records import Codec, encode_batch, encode_message_set

log = logging.getLogger(__name__)

NEWEST_PRODUCE = 12  # 13 names topics by their ids, which this client does not keep
MAGIC_OF_PRODUCE = {0: 0, 1: 0, 2: 1}  # later versions: 2
FIRST_PRODUCE_WITH_ZSTD = 7
MAX_REQUEST_SIZE = 1024 * 1024  # bytes of records, as long as one batch alone is not larger
ACKS_ALL = -1

PartitionResponse = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


@dataclass(slots=True)
class Identity:
    """A producer id, and the next sequence number per partition."""

    producer_id: int
    producer_epoch: int
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    def number(self, batch: Batch) -> int:
        """The sequence number of the batch's first record."""
        sequence = self.sequences.get(batch.partition, 0)
        self.sequences[batch.partition] = (sequence + len(batch.records)) & 0x7FFFFFFF
        return sequence


class Sender(threading.Thread):
    """Runs until the accumulator is closed and empty."""

    def __init__(
        self,
        accumulator: Accumulator,
        cluster: Cluster,
        *,
        acks: int,
        codec: Codec,
        request_timeout: float,
        delivery_timeout: float,
        retry_backoff: float,
    ) -> None:
        super().__init__(name="hmb-producer", daemon=True)
        self._accumulator, self._cluster = accumulator, cluster
        self._acks, self._codec = acks, codec
        self._request_timeout, self._delivery_timeout = request_timeout, delivery_timeout
        self._retry_backoff = retry_backoff
        self._connections: dict[Node, Connection] = {}
        self._identity: Identity | None = None

    def run(self) -> None:
        while batches := self._accumulator.wait_for_batches():
            try:
                self._round(batches)
            except Exception as error:  # whatever it is, nobody may wait for ever
                log.exception("the producer's thread failed")
                for batch in batches:
                    self._give_up(batch, error)
        for connection in self._connections.values():
            connection.close()

    def _round(self, batches: list[Batch]) -> None:
        asked = []
        for leader, batches_of_leader in self._by_leader(batches).items():
            try:
                if sent := self._post(leader, batches_of_leader):
                    asked.append((leader, sent))
            except (ConnectionFailed, KafkaError) as error:
                self._retry_or_give_up(batches_of_leader, error)
        for leader, sent in asked:
            try:
                self._receive(leader, sent)
            except ConnectionFailed as error:
                self._retry_or_give_up(sent, error)

    def _by_leader(self, batches: list[Batch]) -> dict[Node, list[Batch]]:
        by_leader: dict[Node, list[Batch]] = {}
        for batch in batches:
            topic, partition = batch.partition
            try:
                leader = self._cluster.topic(topic).leaders.get(partition)
                if leader is None:
                    raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{batch.partition} has no leader at the moment")
            except (ConnectionFailed, KafkaError) as error:
                self._retry_or_give_up([batch], error)
            else:
                by_leader.setdefault(leader, []).append(batch)
        return by_leader

    def _post(self, leader: Node, batches: list[Batch]) -> list[Batch]:
        """Send the leader one request; these batches went with it, the others wait for the next one."""
        connection = self._connections.get(leader)
        if connection is None:
            connection = self._connections[leader] = self._cluster.connect(leader)
        version = connection.version_of(ProduceRequest, NEWEST_PRODUCE)
        sent: list[Batch] = []
        size = 0
        for batch in batches:
            try:
                data = batch.data = batch.data or self._encode(connection, version, batch)
            except (KafkaError, ValueError) as error:
                if isinstance(error, KafkaError) and error.code.retriable:
                    raise
                self._give_up(batch, error)
                continue
            if not sent or size + len(data) <= MAX_REQUEST_SIZE:
                sent.append(batch)
                size += len(data)
        if sent:
            connection.post(self._request(sent), version, answered=self._acks != 0)
        if self._acks == 0:
            for batch in sent:
                self._deliver(batch, -1, -1)
            return []
        return sent

    def _encode(self, connection: Connection, version: int, batch: Batch) -> bytes:
        magic = MAGIC_OF_PRODUCE.get(version, 2)
        if self._codec is Codec.ZSTD and version < FIRST_PRODUCE_WITH_ZSTD:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{connection.address} is older than zstd (Kafka 2.1)"
            )
        if magic < 2:
            if any(record.headers for record in batch.records):
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"{connection.address} is older than headers (Kafka 0.11)"
                )
            return encode_message_set(batch.records, magic, self._codec)
        identity = self._identify(connection)
        if identity is None:
            return encode_batch(batch.records, codec=self._codec)
        batch.numbered = True
        return encode_batch(
            batch.records,
            codec=self._codec,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=identity.number(batch),
        )

    def _identify(self, connection: Connection) -> Identity | None:
        """The producer id, asked for once; None where the broker or acks do not allow for it."""
        if self._identity is None and self._acks == ACKS_ALL and connection.knows(InitProducerIdRequest):
            response: InitProducerIdResponse = connection.send(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFFFFFF)
            )
            if response.error_code:
                raise answered_error("producer id", response.error_code)
            self._identity = Identity(response.producer_id, response.producer_epoch)
        return self._identity

    def _request(self, batches: Iterable[Batch]) -> ProduceRequest:
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        for batch in batches:
            name, partition = batch.partition
            topic = topics.setdefault(name, ProduceRequest.TopicProduceData(name=name))
            data = memoryview(batch.data or b"")
            topic.partition_data.append(
                ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=data)
            )
        timeout_ms = int(self._request_timeout * 1000)
        return ProduceRequest(acks=self._acks, timeout_ms=timeout_ms, topic_data=list(topics.values()))

    def _receive(self, leader: Node, batches: list[Batch]) -> None:
        response: ProduceResponse = self._connections[leader].receive()
        answers = {
            TopicPartition(topic.name, answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }
        for batch in batches:
            self._settle(batch, answers.get(batch.partition))

    def _settle(self, batch: Batch, answer: PartitionResponse | None) -> None:
        if answer is None:
            self._give_up(batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer for {batch.partition}"))
            return
        if not answer.error_code:
            self._deliver(batch, answer.base_offset, answer.log_append_time_ms)
        elif answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # Written by an earlier try, and too long ago for the broker to say where.
            self._deliver(batch, -1, -1)
        else:
            error = answered_error(batch.partition, answer.error_code, answer.error_message)
            self._retry_or_give_up([batch], error)

    def _retry_or_give_up(self, batches: list[Batch], error: ConnectionFailed | KafkaError) -> None:
        """Put batches off if time may help and there is time left."""
        now = time.monotonic()
        for batch in batches:
            self._cluster.forget(batch.partition.topic)  # a new leader may be why
            if isinstance(error, KafkaError) and not error.code.retriable:
                self._give_up(batch, error)
            elif now >= batch.opened + self._delivery_timeout:
                self._give_up(batch, self._late(batch, error))
            else:
                batch.retry_at = now + self._retry_backoff

    def _late(self, batch: Batch, error: ConnectionFailed | KafkaError) -> Exception:
        what = f"{len(batch.records)} records for {batch.partition}"
        what = f"{what} not delivered in {self._delivery_timeout:g} s: {error}"
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(error.host, error.port, what)
        return KafkaError(error.code, what)

    def _give_up(self, batch: Batch, error: Exception) -> None:
        if batch.settled:
            return
        if batch.numbered:
            self._identity = None  # the numbers have a gap now
        batch.fail(error)
        self._accumulator.done(batch)

    def _deliver(self, batch: Batch, offset: int, log_append_time: int) -> None:
        batch.deliver(offset, log_append_time)
        self._accumulator.done(batch)  # afterwards: who flushes waits for what is still in the queues
