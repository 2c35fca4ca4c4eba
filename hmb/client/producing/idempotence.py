"""Idempotence: the numbers by which a broker recognizes a batch that arrives twice (KIP-98).

The problem: a response can get lost after the broker has written a batch. The producer then sends the batch again, and
the broker must not write it twice.

The idea: the producer asks once for a *producer id*, and numbers the records of each partition from 0 on. The broker
expects the next *sequence number*. A lower number belongs to a batch that the broker already has, so it drops the copy.
A higher number shows a gap, so the broker rejects the batch.

For example, a producer sends records 0 to 9, and the response gets lost. It sends the batch again with base sequence 0.
The broker expects 10, recognizes the batch, and answers with the offset of the first copy.

A batch that fails leaves a gap. A copy of the batch may also wait in the buffers of a broken connection, and be written
later. The *producer epoch* solves both problems, the gap and the late copy (KIP-360). The next batch of the partition
carries a greater epoch and starts from 0 again, and the broker rejects every batch with a lower epoch from then on. The
producer raises the epoch itself. If the broker has certainly rejected the batch, no gap exists, and the next batch
takes its numbers.

Several batches of a partition may be in flight. When the broker rejects one of them, it also rejects the batches after
it, because their numbers do not follow. All of them stay in the queue. The result of the first rejected batch decides
about the batches after it::

    the first batch            the batches after it
    is sent again              are sent again after it, with their own numbers; the broker recognizes the batches that
                               it has already written
    is split                   keep their numbers, because the halves together have the numbers of the first batch
    fails, and
      was not written          were not written either, and get new numbers
      may have been written    may have been written, too; those with an unknown result keep their numbers, and the
                               broker recognizes or rejects them; the first batch that the broker has certainly
                               rejected, and all batches after it, get new numbers in a new epoch

A broker recognizes a batch only if it expects a certain number. A broker without any batch of a producer accepts every
number, so it would accept the second batch without the first. Therefore only one batch is in flight until the broker
has accepted one, also in a new epoch. Batches of two epochs are never in flight together. A broker forgets a producer
that has been idle for a day (`producer.id.expiration.ms`). If such a producer sends two batches and the first one is
rejected, the first may be written after the second. It is still written only once.

A broker remembers the last five batches of each producer. The producer therefore keeps at most five batches between the
oldest one that it may have to send again and the newest one that it has sent. Some batches after a rejected one may be
written already, by an earlier attempt. The limit of five includes these batches. After a failure the producer sends one
batch at a time until every batch sent before is completed (`PartitionQueue.window`).
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

MAX_SEQUENCE = 2**31 - 1
SEQUENCE_ERRORS = {  # the errors that a broker returns if it expects other numbers
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}


class AtLeastOnce:
    """The guarantee of a producer without idempotence: batches carry no numbers, and a retry may write them twice.

    The producer's threads call these methods. `Idempotence` and `TransactionManager` override them.
    """

    transactional_id: str | None = None
    # The reason why no queued batch may be sent any more, or None while batches may be sent.
    abort_reason: Exception | None = None

    def identity(self, connection: Connection) -> ProducerIdentity | None:
        """Return the producer's id and epoch, or None if batches carry no numbers."""
        return None

    def new_epoch(self, queue: PartitionQueue) -> None:
        """Let the sequence numbers of a partition begin at 0 again, with a new epoch of the producer."""

    def join(self, partitions: Iterable[TopicPartition]) -> None:
        """Prepare for the first batch of each of these partitions. Only transactions need a request for it."""

    def failed(self, error: Exception) -> None:
        """Note that a batch has failed."""


class Idempotence(AtLeastOnce):
    """The guarantee of an idempotent producer without transactions: each record is written once, or fails.

    Any broker can assign the producer id. The producer asks for it once.
    """

    def __init__(self, *, required: bool) -> None:
        """Without `required`, the producer works without idempotence if the broker does not support it."""
        self._required = required
        self._lock = threading.Lock()  # guards the identity; held during the request to the broker
        self._identity: ProducerIdentity | None = None

    def identity(self, connection: Connection) -> ProducerIdentity | None:
        """Return the producer's id and epoch, or None if the broker is older than Kafka 0.11.

        The first call sends a request to the broker, and so does the first call after the last epoch. In the second
        case, `connection` may have batches in flight. The connection is then closed, and the batches are sent again.
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
        """Raise the epoch of a partition. After 32767 epochs the producer asks for a new id instead."""
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
    """Give a batch the next number of its partition, and return it."""
    sequence = batch.queue.sequence
    if sequence is None or sequence.identity is not identity:
        sequence = batch.queue.sequence = PartitionSequence(identity, identity.producer_epoch)
    batch.number = BatchNumber(identity.producer_id, sequence.epoch, sequence.next)
    sequence.next = (sequence.next + batch.records.count) & MAX_SEQUENCE
    return batch.number


def is_of_current_epoch(batch: ProducerBatch) -> bool:
    """Return whether the next batch of the partition gets the epoch of this batch. True if batches have no numbers."""
    number, sequence = batch.number, batch.queue.sequence
    if number is None:
        return True
    return sequence is not None and number[:2] == (sequence.identity.producer_id, sequence.epoch)


def release_numbers(batch: ProducerBatch, after: list[ProducerBatch], guarantee: AtLeastOnce) -> None:
    """Decide which sequence numbers remain in use when a batch fails.

    `after` are the batches that were sent after it.
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
    """Let a batch, and the batches sent after it, get new numbers in a new epoch.

    Call it when the broker does not know the producer's numbers any more and has certainly not written the batch.
    """
    if is_of_current_epoch(batch):
        guarantee.new_epoch(batch.queue)
    _clear_numbers([batch, *after])


def _have_the_last_numbers(batches: list[ProducerBatch]) -> bool:
    """Return whether these batches have all sequence numbers from the first batch's number to the last assigned number.

    Otherwise the broker has accepted a batch between them.
    """
    first, sequence = batches[0].number, batches[0].queue.sequence
    if first is None or sequence is None:
        return False
    return (first.base_sequence + sum(other.records.count for other in batches)) & MAX_SEQUENCE == sequence.next


def _clear_numbers(batches: list[ProducerBatch]) -> None:
    """Let these batches get new numbers when they are sent again. No copy of them can reach the broker any more."""
    for batch in batches:
        batch.number, batch.uncertain_attempts = None, 0
