"""The producer's threads: one router thread finds the leaders, and one sender thread sends batches to each leader.

While a sender thread waits for a response, application threads add records to the next batches. The longer a
broker takes to respond, the more records these batches contain. So a slow broker gets few large requests, and a
fast broker gets many small requests.

A sender thread repeats three steps:
1. It takes the batches that are ready to be sent.
2. It sends these batches in as few requests as possible.
3. It waits for one response, and then reads all other responses that have already arrived.

Each leader has its own sender thread, so that a slow leader does not delay the batches for another leader.

For example, a broker answers each request within 5 ms, and an application sends 100,000 records a second. While one
request is in flight, the application sends 500 further records. The next request contains these 500 records.

A sender thread can send the next request before the response to the previous request arrives. The broker handles the
requests of a connection in the order in which they arrive. Each partition has a queue of batches. The queue's *window*
is the number of its batches that can be in flight at the same time (module `batch`). When a response arrives, the
module `completion` decides what happens to each batch of the request.

Source: Kafka's `Sender`. Kafka has one sender thread for all leaders. HMB has one sender thread for each leader.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.metadata import Cluster, Node
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.batch import PartitionQueue, ProducerBatch
from hmb.client.producing.completion import BatchCompletion, FailedBatch
from hmb.client.producing.encoding import Encoding, produce_request, renumbered, requests
from hmb.client.producing.idempotence import AtLeastOnce, assign_sequence
from hmb.client.producing.settings import ACKS, ProducerSettings
from hmb.defaults import BUG
from hmb.protocol.enums import NO_OFFSET, Acks
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import NO_TIMESTAMP
from hmb.records.batch import MAGIC
from hmb.records.producer_numbers import ProducerIdAndEpoch

LOGGER = logging.getLogger(__name__)


class LeaderRouter(threading.Thread):
    """A thread that finds the leader of each partition, and moves the partition's queue to this leader's sender.

    The thread ends when the producer is closed and all batches are delivered or have failed.
    """

    def __init__(
        self,
        accumulator: Accumulator,
        cluster: Cluster,
        settings: ProducerSettings,
        encoding: Encoding,
        guarantee: AtLeastOnce,
        completion: BatchCompletion,
    ) -> None:
        super().__init__(name="hmb-producer", daemon=True)
        self._accumulator, self._cluster = accumulator, cluster
        self._settings, self._encoding = settings, encoding
        self._guarantee, self._completion = guarantee, completion
        self._senders: dict[Node, Sender] = {}

    def run(self) -> None:
        accumulator = self._accumulator
        while not accumulator.finished:
            batches = accumulator.wait_for_batches(accumulator.without_leader, self._settings["metadata_max_age"])
            for batch in self._completion.sendable(batches):
                try:
                    self._route(batch)
                except (ConnectionFailed, KafkaError) as error:
                    self._completion.retry_or_fail(batch, error)
                except Exception as error:  # Application threads wait for the result, so report any error to them.
                    LOGGER.exception("the batch of %s cannot be sent; %s", batch.partition, BUG)
                    self._completion.fail(batch, error)
            if not batches:
                self._refresh_metadata()
        for sender in self._senders.values():
            sender.join()  # The sender ends soon: no batch is left, so it waits for no response.

    def _refresh_metadata(self) -> None:
        """Request the metadata of the producer's topics again, because the topics may have new partitions."""
        for topic in self._accumulator.topics():
            with suppress(ConnectionFailed, KafkaError):  # If the error does not go away, a later request raises it.
                self._cluster.topic(topic)

    def interrupt(self) -> None:
        """Shut down the connections of all sender threads, so that no sender thread waits for a response.

        Any thread may call this method.
        """
        for sender in list(self._senders.values()):
            sender.connection.interrupt()

    def _route(self, batch: ProducerBatch) -> None:
        leader = self._cluster.leader(batch.partition)
        sender = self._senders.get(leader)
        if sender is None:
            connection = self._cluster.connect(leader)
            settings, encoding = self._settings, self._encoding
            sender = Sender(connection, self._accumulator, settings, encoding, self._guarantee, self._completion)
            sender.start()
            self._senders[leader] = sender
        self._accumulator.move(batch.queue, sender.queues)


class Sender(threading.Thread):
    """A thread that sends batches to one leader and reads its responses."""

    def __init__(
        self,
        connection: Connection,
        accumulator: Accumulator,
        settings: ProducerSettings,
        encoding: Encoding,
        guarantee: AtLeastOnce,
        completion: BatchCompletion,
    ) -> None:
        super().__init__(name=f"hmb-producer-{connection.address}", daemon=True)
        self.connection, self.queues = connection, accumulator.new_sender_queues()
        self._accumulator, self._counters = accumulator, accumulator.counters
        self._settings, self._encoding = settings, encoding
        self._guarantee, self._completion = guarantee, completion
        self._taken: list[ProducerBatch] = []  # the batches that the next request will contain
        # For each request without a response: its batches, and the time of sending (`time.monotonic()`).
        self._posted: deque[tuple[list[ProducerBatch], float]] = deque()
        # For each queue: its failed batches. When no batch of a queue is in flight, the sender thread decides which of
        # them to send again.
        self._failed: dict[PartitionQueue, list[FailedBatch]] = {}

    def run(self) -> None:
        while True:
            batches = self._accumulator.wait_for_batches(self.queues, 0 if self._posted else None)
            if not batches and not self._posted:  # The producer is closed, and no batch is left.
                break
            self._taken = self._completion.sendable(batches)
            try:
                if self._taken:
                    self._send()
                if self._posted:
                    self._receive()
            except (ConnectionFailed, KafkaError) as error:
                self._fail_all(error)
            except Exception as error:  # Application threads wait for the result, so report any error to them.
                LOGGER.exception("the requests to %s failed; %s", self.connection.address, BUG)
                self._fail_all(error)
        self.connection.close()

    def _send(self) -> None:
        """Encode the batches that the thread has taken from its queues (`_taken`), and send them to the leader."""
        version = self._guarantee.produce_version(self.connection)
        has_batches = ProduceRequest.magic_of(version) == MAGIC  # otherwise, the request has messages v0 or v1
        producer = self._guarantee.producer_id_and_epoch(self.connection) if has_batches else None
        self._taken = [batch for batch in self._taken if self._encode(batch, version, producer)]
        self._guarantee.add_partitions(batch.partition for batch in self._taken)
        grouped = requests(self._taken, self._settings["max_request_size"])
        if grouped:
            self._post(grouped, version)

    def _encode(self, batch: ProducerBatch, version: int, producer: ProducerIdAndEpoch | None) -> bool:
        """Encode a batch, unless it is already encoded. Return True if the batch can be sent.

        If the broker is too old for the batch, report to the application that the batch has failed, and return False.
        """
        if batch.data is None:
            try:
                data = self._encoding.encode(batch, version, producer, self.connection.address)
            except KafkaError as error:
                self._completion.fail(batch, error)
                return False
            self._accumulator.encoded(batch, data)
        elif batch.numbers is None and producer is not None:
            batch.data = renumbered(batch.data, assign_sequence(batch, producer))
        return True

    def _post(self, grouped: list[list[ProducerBatch]], version: int) -> None:
        """Send one request for each group of batches, without waiting for the responses."""
        acks, timeout_ms = ACKS[self._settings["acks"]], int(self._settings["request_timeout"] * 1000)
        transactional_id, now = self._guarantee.transactional_id, time.monotonic()
        expects_response = acks != Acks.NONE
        for batches in grouped:
            for batch in batches:
                batch.uncertain_attempts += 1
                batch.queue.in_flight += 1
            self._posted.append((batches, now))
        self._taken = []
        self.connection.post_all(
            [produce_request(batches, acks, timeout_ms, transactional_id) for batches in grouped],
            version,
            expects_response=expects_response,
        )
        self._counters.posted(len(grouped))
        if not expects_response:
            for batch in self._in_flight():
                batch.queue.in_flight = 0
                self._completion.deliver(batch, NO_OFFSET, NO_TIMESTAMP)
            self._posted.clear()

    def _receive(self) -> None:
        """Wait for one response. Then also handle all responses that have already arrived."""
        while self._posted:
            response: ProduceResponse = self.connection.receive(self._settings["request_timeout"])
            batches, since = self._posted[0]
            self._counters.response_received(time.monotonic() - since)
            self._complete(batches, response)
            # The method removes the request only after it has handled the response. If the handling raises an
            # exception, `_fail_all` still finds the request's batches in `_posted`.
            self._posted.popleft()
            if not self.connection.has_buffered:
                return

    def _complete(self, batches: Iterable[ProducerBatch], response: ProduceResponse) -> None:
        partitions = {
            TopicPartition(topic.name, partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }
        for batch in batches:
            batch.queue.in_flight -= 1
            failure = self._completion.handle_response(batch, partitions.get(batch.partition))
            if failure is not None:
                self._add_failure(failure)
            if self._failed and not batch.queue.in_flight:
                self._resolve(batch.queue)

    def _add_failure(self, failure: FailedBatch) -> None:
        queue = failure.batch.queue
        queue.window = 0
        self._failed.setdefault(queue, []).append(failure)

    def _resolve(self, queue: PartitionQueue) -> None:
        if queue in self._failed:
            self._completion.resolve(queue, self._failed.pop(queue))

    def _fail_all(self, error: Exception) -> None:
        """Close the connection, and treat the batches in flight and the batches in `_taken` as failed."""
        self.connection.close()
        for batch in [*self._in_flight(), *self._taken]:
            batch.queue.in_flight = 0
            self._add_failure(FailedBatch(batch, error))
        self._posted.clear()
        self._taken = []
        for queue in list(self._failed):
            self._resolve(queue)

    def _in_flight(self) -> list[ProducerBatch]:
        return [batch for batches, _ in self._posted for batch in batches]
