"""Idempotence: each batch contains numbers, by which a broker recognizes a batch that it already has (KIP-98).

The problem: a response can get lost after the broker has written a batch. The producer then sends the batch again, and
the broker must not write it twice.

The idea: the producer asks a broker once for a *producer id*. The producer gives the records of each partition the
*sequence numbers* 0, 1, 2 and so on. The broker knows the sequence number that must come next. If a batch begins with a
lower number, the broker already has the batch, and drops the copy. If a batch begins with a higher number, an earlier
batch is missing, and the broker rejects the batch.

For example, a producer sends a batch of ten records with the sequence numbers 0 to 9, and the response gets lost. The
producer sends the batch again. The broker expects 10 as the next number, but the batch begins with 0. The broker
therefore recognizes the copy, and answers with the offset of the first copy.

If a batch fails and is not sent again, its sequence numbers are missing: they form a gap. A copy of the failed batch
may still wait in the buffers of a broken connection, and the broker may write this copy later. The *producer epoch*
solves both problems (KIP-360). The producer raises its epoch by one for the next batch of the partition, and begins
with the sequence number 0 again. From then on, the broker rejects each batch with a lower epoch. The producer raises
the epoch itself, without a request. If the broker has certainly rejected the failed batch, a new epoch is not
necessary: the next batch gets the numbers of the failed batch.

Several batches of a partition may be in flight. If the broker rejects one batch, it also rejects the batches that were
sent after it, because these batches begin with a higher number than the broker expects. All of them stay in the queue.
The first rejected batch decides what happens to the batches after it:
    the first batch            the batches after it
    is sent again              are sent again, too, with their old numbers; if the broker has already written one of
                               them, it drops the copy
    is split                   keep their numbers, because the halves together have the numbers of the first batch
    fails, and
      was not written          were not written either, and get new numbers
      may have been written    may have been written, too; a batch with an unknown result keeps its numbers, and the
                               broker recognizes or rejects it; the first batch that the broker has certainly
                               rejected, and all batches after it, get new numbers in a new epoch

A broker that has no batch of a producer accepts any sequence number. It would therefore accept the second batch of the
producer although the first batch is missing. To prevent this, the producer keeps only one batch of a partition in
flight until the broker has written a batch. It does the same after each change of the epoch. Batches of two epochs are
never in flight together.

One case remains. A broker forgets a producer that has sent nothing for a day (`producer.id.expiration.ms`). If this
producer then sends two batches, the broker may reject the first batch and accept the second one. The producer sends the
first batch again, and the broker writes it after the second batch. Each batch is still written only once.

A broker remembers the last five batches of each producer. The producer therefore counts the batches from the oldest
batch that it may have to send again to the newest batch that it has sent. It never lets this number exceed five. The
number includes batches that the broker has already written in an earlier attempt. After a failure, the producer sends
one batch at a time until all batches that were sent before the failure are completed (`PartitionQueue.window`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import takewhile

from hmb.client.connection import Connection
from hmb.client.errors import answered_error
from hmb.client.producing.batch import BatchNumber, PartitionQueue, PartitionSequence, ProducerBatch, ProducerIdentity
from hmb.protocol.enums import MAX_PRODUCER_EPOCH
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.topics import TopicPartition
from hmb.records.batch import increment_sequence

SEQUENCE_ERRORS = {  # the errors that a broker returns if a batch does not have the numbers that it expects
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}


class AtLeastOnce:
    """The guarantee of a producer without idempotence: each record is written at least once, or fails.

    Its batches contain no sequence numbers, so a retry may write a batch twice. The subclasses `Idempotence` and
    `TransactionManager` override the methods. The producer's threads call the methods.
    """

    transactional_id: str | None = None
    # None while batches may be sent. Otherwise no batch may be sent, and this is the reason.
    abort_reason: Exception | None = None

    def identity(self, connection: Connection) -> ProducerIdentity | None:
        """Return the producer's id and epoch, or None if the batches of this producer contain no numbers."""
        return None

    def new_epoch(self, queue: PartitionQueue) -> None:
        """Raise the producer epoch for a partition. The sequence numbers of the partition begin with 0 again."""

    def join(self, partitions: Iterable[TopicPartition]) -> None:
        """Add these partitions to the transaction, before their batches are sent. Without transactions, do nothing."""

    def failed(self, error: Exception) -> None:
        """Record that a batch has failed. Only a producer with transactions needs to know this."""


class Idempotence(AtLeastOnce):
    """The guarantee of an idempotent producer without transactions: each record is written exactly once, or fails.

    The producer requests a producer id from the broker to which it sends its first batch. Any broker can assign one.
    """

    def __init__(self, *, required: bool) -> None:
        """If `required` is False and the broker does not support idempotence, the producer works without it."""
        self._required = required
        self._lock = threading.Lock()  # guards `_identity`; a thread also holds it during the request to the broker
        self._identity: ProducerIdentity | None = None

    def identity(self, connection: Connection) -> ProducerIdentity | None:
        """Return the producer's id and epoch, or None if the broker is older than Kafka 0.11.

        The first call requests a producer id from the broker. When all epochs of this id are used, the next call
        requests a new id. If batches are in flight on `connection` then, the connection closes, and the producer sends
        these batches again.
        """
        with self._lock:
            if self._identity is None:
                if not self._required and not connection.knows(InitProducerIdRequest):
                    return None
                response: InitProducerIdResponse = connection.send(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFFFFFF)
                )
                if response.error_code:
                    raise answered_error("producer id", response.error_code)
                self._identity = ProducerIdentity(response.producer_id, response.producer_epoch)
            return self._identity

    def new_epoch(self, queue: PartitionQueue) -> None:
        """Raise the epoch of a partition by one. After the last epoch (32767), request a new producer id instead."""
        sequence = queue.sequence
        if sequence is None:
            return
        if sequence.epoch < MAX_PRODUCER_EPOCH:
            sequence.epoch, sequence.next = sequence.epoch + 1, 0
            return
        queue.sequence = None
        with self._lock:
            if self._identity is sequence.identity:
                self._identity = None


def number(batch: ProducerBatch, identity: ProducerIdentity) -> BatchNumber:
    """Assign the next sequence numbers of the partition to a batch. Return the numbers of the batch."""
    sequence = batch.queue.sequence
    if sequence is None or sequence.identity is not identity:
        sequence = batch.queue.sequence = PartitionSequence(identity, identity.producer_epoch)
    batch.number = BatchNumber(identity.producer_id, sequence.epoch, sequence.next)
    sequence.next = increment_sequence(sequence.next, batch.records.count)
    return batch.number


def is_of_current_epoch(batch: ProducerBatch) -> bool:
    """Return whether the batch has the epoch that the next batch of its partition gets.

    Return True if the batches of this producer contain no numbers.
    """
    number, sequence = batch.number, batch.queue.sequence
    if number is None:
        return True
    return sequence is not None and number[:2] == (sequence.identity.producer_id, sequence.epoch)


def release_numbers(batch: ProducerBatch, after: list[ProducerBatch], guarantee: AtLeastOnce) -> None:
    """Decide which sequence numbers the next batches of a partition get, because a batch has failed.

    `after` contains the batches of the partition that were sent after the failed batch.
    """
    if batch.number is None:
        return
    uncertain = list(takewhile(lambda other: other.uncertain_attempts, after)) if batch.uncertain_attempts else []
    rejected = [batch, *after[len(uncertain) :]]
    if is_of_current_epoch(batch):
        if any(other.uncertain_attempts for other in rejected) or not _have_the_last_numbers(rejected):
            guarantee.new_epoch(batch.queue)
        elif batch.queue.sequence is not None:
            batch.queue.sequence.next = batch.number.base_sequence
    _clear_numbers(rejected)


def renumber_in_new_epoch(batch: ProducerBatch, after: list[ProducerBatch], guarantee: AtLeastOnce) -> None:
    """Let a batch, and the batches that were sent after it, get new numbers in a new epoch.

    This is allowed only if the broker has forgotten the producer's numbers and has certainly not written the batch.
    """
    if is_of_current_epoch(batch):
        guarantee.new_epoch(batch.queue)
    _clear_numbers([batch, *after])


def _have_the_last_numbers(batches: list[ProducerBatch]) -> bool:
    """Return whether these batches have the last sequence numbers that were assigned in the partition, without a gap.

    If a gap exists, the broker has accepted a batch between these batches.
    """
    first, sequence = batches[0].number, batches[0].queue.sequence
    if first is None or sequence is None:
        return False
    return increment_sequence(first.base_sequence, sum(other.records.count for other in batches)) == sequence.next


def _clear_numbers(batches: list[ProducerBatch]) -> None:
    """Remove the numbers of these batches, so that they get new numbers when they are sent again.

    The caller makes sure that no copy of these batches can still reach the broker, or that it will be rejected.
    """
    for batch in batches:
        batch.number, batch.uncertain_attempts = None, 0
