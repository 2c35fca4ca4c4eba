"""Idempotence: a broker uses sequence numbers to detect a batch that it has already written (KIP-98).

The problem: a response can get lost after the broker has written a batch. The producer then sends the batch again, but
the broker must write the batch only once.

The idea: the producer requests a *producer id* from a broker once. The producer's records for each partition get the
*sequence numbers* 0, 1, 2 and so on.

For each producer and each partition, the broker remembers the sequence numbers of the last five batches. If a batch has
the same sequence numbers as one of these five, it is a copy, and the broker drops it. If a batch begins with the next
sequence number, the broker writes it. The broker rejects any other batch with OUT_OF_ORDER_SEQUENCE_NUMBER. In this
case, an earlier batch is missing, or the batch is a copy of a batch that is older than the last five.

For example, a producer sends a batch of ten records with the sequence numbers 0 to 9, and the response gets lost. The
producer sends the batch again. The broker remembers that it has already written a batch of this producer with the
numbers 0 to 9. It therefore does not write the copy, and answers with the offset of the batch in the log.

When the producer gives up a batch, two problems arise:

- The broker still expects the sequence numbers of the batch that was given up, so it rejects all later batches.
- A late copy of that batch may arrive. The broker then writes records for which the producer has reported an
  error.

After the producer has given up a batch, it can begin a new *producer epoch* for the partition (KIP-360). The
epoch is a number in each batch. The producer increases the epoch by one, and gives the sequence number 0 to the
next record of the partition. It needs no request to a broker.

For example, the producer gives up the batch with the sequence numbers 10 to 19. The next batch has a new epoch,
and begins with the number 0. The broker accepts it, although 10 to 19 are missing. If the old batch arrives late,
the broker rejects it, because its epoch is too low.

If the broker has rejected every copy of a batch, no copy can be written later. The producer can then give up
the batch without a new epoch. The next batch gets the sequence numbers of the rejected batch.

Several batches of a partition can be in flight. If the broker rejects one batch, the sequence numbers of this
batch are missing in the log. The broker then also rejects the later batches, because it expects the missing
numbers first. All these batches stay in the producer's queue. Let A be the first batch that failed: the broker has
rejected it, or the broker's response is lost. There are four cases:

- The producer sends the failed batch A and all later batches again, with their old sequence numbers. The broker
  drops each batch that it has already written.

- The broker rejects batch A, because A is too large. The producer divides the records and the sequence
  numbers of A between two batches. The later batches keep their numbers.

- The producer gives up the failed batch A, and knows that the broker has not written A. The broker has not
  written the batches after A either. The later batches get new sequence numbers.

- The producer gives up the failed batch A, but the broker may have written A and batches after A. Let B be the
  first later batch that the broker has certainly rejected. The broker also rejects all batches after B. So B
  and the batches after B get new sequence numbers in a new epoch.

  The broker may have written the batches between A and B. So the producer sends these batches again with their old
  sequence numbers and epoch. The broker drops or rejects each batch that it has already written.

For example, the responses to batches 1 and 2 get lost, and the broker rejects batches 3 and 4. After a timeout,
the producer gives up batch 1. It resends batch 2 with the old numbers, because the broker may have written it.
Batches 3 and 4 get new numbers and a new epoch.

If a broker knows no batch of a producer in a partition, it accepts any sequence number. Suppose that the
producer sends its first two batches together, and the first one is lost. The broker would then accept the
second batch, although the first one is missing.

So the producer first sends only one batch of a partition. After the broker has written this batch, several
batches can be in flight. After each change of the epoch, the producer begins with one batch again. Batches of a
partition with different epochs are never in flight together.

A broker forgets a producer that sends nothing for a day (`producer.id.expiration.ms`). It then accepts any next
batch, even if an earlier batch is missing. Batches can be written in the wrong order only in this case.

Suppose that a broker has forgotten a producer, and the producer sends batches A and B together. The broker
rejects A, because A is too large. But it writes B, because it accepts any sequence number from a forgotten
producer.

The producer splits batch A, which is too large. Batch B is already in the log, so the broker rejects the lower
sequence numbers of A's halves. With a new epoch, the broker writes the halves once, after B.

For each partition, a broker remembers only the last five batches of a producer. If an older batch arrives twice,
the broker cannot recognize the copy. Therefore, the producer sends batch 6 of a partition only after the broker
has written batch 1, or the producer has given up batch 1.

After a batch fails, the producer sends only one batch of the partition at a time (`PartitionQueue.window` is
1). The limit ends after the broker has written a batch of the current producer epoch, if no later batch in the
queue has sequence numbers.

Suppose that five batches are in flight when the connection breaks. The producer does not know which of them the
broker has written, so it sends these five again, one by one, before it sends newer batches. The broker recognizes
a copy only if the batch is one of the producer's last five batches. If the producer sent newer batches first, the
broker might not recognize some copies.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import takewhile

from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.producing.batch import PartitionQueue, PartitionSequence, ProducerBatch
from hmb.protocol.enums import INT32_MAX, MAX_PRODUCER_EPOCH
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import BatchNumbers, ProducerIdAndEpoch, increment_sequence

# The newest version of Produce for a producer without transactions. From the next version on, a Produce request can add
# partitions to a transaction (KIP-890). Only a producer with transactions needs this feature.
NEWEST_PRODUCE = ProduceRequest.FIRST_VERSION_OF_ADDING - 1
SEQUENCE_ERRORS = {  # the errors for a batch with a wrong sequence number, an unknown producer id, or an invalid epoch
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}


class AtLeastOnce:
    """The guarantee without idempotence: the producer writes each record at least once, or reports an error.

    The producer's batches contain no sequence numbers, so a retry may write a batch twice. The producer's threads call
    the methods of this class. The subclasses `Idempotence` and `TransactionManager` override these methods for stronger
    guarantees.
    """

    transactional_id: str | None = None
    # The error that forbids the producer to send batches, or None.
    abort_reason: Exception | None = None

    def producer_id_and_epoch(self, connection: Connection) -> ProducerIdAndEpoch | None:
        """Return the producer's id and epoch, or None if the batches of this producer contain no sequence numbers."""
        return None

    def produce_version(self, connection: Connection) -> int:
        """Return the version of the Produce requests that the producer sends on this connection."""
        return connection.version_of(ProduceRequest, NEWEST_PRODUCE)

    def new_epoch(self, queue: PartitionQueue) -> None:
        """Increase the producer epoch of a partition, and start the partition's sequence numbers at 0 again."""

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the transaction before their first batches are sent. Without transactions, do nothing."""

    def failed(self, error: Exception) -> None:
        """Handle the error of a batch that the producer has given up. Without transactions, do nothing."""


class Idempotence(AtLeastOnce):
    """The guarantee of an idempotent producer without transactions: it writes each record once, or reports an error.

    Any broker can assign a producer id. The producer requests the id from the broker that receives the producer's first
    batch.
    """

    def __init__(self, *, required: bool) -> None:
        """Store `required`: whether the producer must be idempotent.

        Some brokers are too old for idempotence. If `required` is True, the producer reports an error for such a
        broker. Otherwise, it sends batches to this broker without idempotence.
        """
        self._required = required
        self._lock = threading.Lock()  # guards `_producer`; a thread also holds it during the request to the broker
        self._producer: ProducerIdAndEpoch | None = None

    def producer_id_and_epoch(self, connection: Connection) -> ProducerIdAndEpoch | None:
        """Return the producer's id and epoch, or None if the broker is older than Kafka 0.11.

        If idempotence is required, the method raises KafkaError instead of returning None. It also raises KafkaError if
        the broker answers with an error.

        The first call requests an id. After the last epoch (32767) of this id, the next call requests a new id.

        If requests are in flight on `connection` when a new id is needed, the method closes the connection and raises
        ConnectionFailed. The producer then sends the batches of these requests again.
        """
        with self._lock:
            if self._producer is None:
                if not self._required and not connection.supports(InitProducerIdRequest):
                    return None
                response: InitProducerIdResponse = connection.send(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)
                )
                if response.error_code:
                    raise response_error("producer id", response.error_code)
                self._producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            return self._producer

    def new_epoch(self, queue: PartitionQueue) -> None:
        """Begin a new epoch of a partition: raise its epoch by one, and continue with the sequence number 0.

        If the epoch is already 32767, the highest possible epoch, forget the producer id instead. The producer then
        requests a new id before it sends the next batch.
        """
        sequence = queue.sequence
        if sequence is None:
            return
        if sequence.epoch < MAX_PRODUCER_EPOCH:
            sequence.epoch, sequence.next = sequence.epoch + 1, 0
            return
        queue.sequence = None
        with self._lock:
            if self._producer is sequence.producer:
                self._producer = None


def assign_sequence(batch: ProducerBatch, producer: ProducerIdAndEpoch) -> BatchNumbers:
    """Set and return the numbers of a batch: producer id, epoch, and the partition's next sequence number."""
    sequence = batch.queue.sequence
    if sequence is None or sequence.producer is not producer:
        sequence = batch.queue.sequence = PartitionSequence(producer, producer.epoch)
    batch.numbers = BatchNumbers(producer.producer_id, sequence.epoch, sequence.next)
    sequence.next = increment_sequence(sequence.next, batch.records.count)
    return batch.numbers


def is_of_current_epoch(batch: ProducerBatch) -> bool:
    """Return whether a batch has the current epoch of its partition, or has no epoch yet.

    The current epoch is the epoch that the next batch of the partition gets. A batch gets its epoch together with
    its sequence numbers.
    """
    numbers, sequence = batch.numbers, batch.queue.sequence
    if numbers is None:
        return True
    return sequence is not None and numbers[:2] == (sequence.producer.producer_id, sequence.epoch)


def release_sequences(batch: ProducerBatch, after: list[ProducerBatch], guarantee: AtLeastOnce) -> None:
    """Free the sequence numbers of `batch`, because the producer gives up this batch.

    The list `after` contains the partition's batches that were sent after `batch`. The function also frees the
    numbers of each later batch that the broker has certainly not written.

    - If the partition has a newer epoch than `batch`, the newer epoch stays.
    - If the broker has certainly not written `batch` or any later batch, the next batch begins with the first
      number of `batch`.
    - Otherwise, the next batch begins a new epoch.
    """
    if batch.numbers is None:
        return
    uncertain = list(takewhile(lambda other: other.uncertain_attempts, after)) if batch.uncertain_attempts else []
    rejected = [batch, *after[len(uncertain) :]]
    if is_of_current_epoch(batch):
        if any(other.uncertain_attempts for other in rejected) or not _have_the_last_sequences(rejected):
            guarantee.new_epoch(batch.queue)
        elif batch.queue.sequence is not None:
            batch.queue.sequence.next = batch.numbers.base_sequence
    _clear_sequences(rejected)


def restart_in_new_epoch(batch: ProducerBatch, after: list[ProducerBatch], guarantee: AtLeastOnce) -> None:
    """Prepare `batch`, and the batches that were sent after it, for new sequence numbers in a new epoch.

    Call this function only if the broker has forgotten the producer's numbers, and has certainly not written
    `batch`.
    """
    if is_of_current_epoch(batch):
        guarantee.new_epoch(batch.queue)
    _clear_sequences([batch, *after])


def _have_the_last_sequences(batches: list[ProducerBatch]) -> bool:
    """Return whether the rejected batches have the last sequence numbers of the partition, without a gap.

    The list `batches` contains the rejected batches, in the order in which the producer has sent them.

    For example, the producer has used the sequence numbers 0 to 39 in a partition. If the broker has rejected
    the batches with 20 to 29 and 30 to 39, the result is True.

    If the broker has rejected the batch with 20 to 29, but accepted the batch with 30 to 39, the result is
    False.
    """
    first, sequence = batches[0].numbers, batches[0].queue.sequence
    if first is None or sequence is None:
        return False
    return increment_sequence(first.base_sequence, sum(other.records.count for other in batches)) == sequence.next


def _clear_sequences(batches: list[ProducerBatch]) -> None:
    """Remove the sequence numbers of these batches. At the next attempt, the batches get new numbers.

    Call this function only if the broker will certainly not write these batches with their old numbers.
    """
    for batch in batches:
        batch.numbers, batch.uncertain_attempts = None, 0
