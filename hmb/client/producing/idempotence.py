"""Numbers by which a broker knows a batch again, so that a retry is not written twice (KIP-98).

An answer may get lost after the batch was written; the producer sends it again. So it asks for a *producer id* once,
and numbers the records of each partition from 0 on. The broker expects the next *sequence number*: a lower one means
that it has the batch already, and the second is dropped; a higher one is a gap, and is refused.

A batch that is given up leaves a gap, and perhaps a copy still under way, in the buffers of a dying connection, that
could be written behind its successors. Both are solved by the *producer epoch* (KIP-360): the partition's next batch
has a higher one and starts from 0 again, and the broker refuses whatever comes with a lower epoch after that. No broker
has to be asked for it. A batch that was refused for certain leaves no gap: its numbers are used for the next one.

Several batches of a partition may be under way. When one is refused, those behind it are refused, too, since they do
not fit, and stay in the queue; what becomes of them follows from what becomes of the refused one:

    it is sent again       so are they, behind it and with their own numbers; what is written already is known again
    it is split            its halves share its numbers out among them, so those behind still fit
    it is given up, and
      is not written       then neither are those behind it, nor can they be: they are numbered anew
      may be written       then so may those behind it whose fate is unknown: they keep their numbers, and are either
                           known again, or do not fit and are given up; the first one that was refused for certain, and
                           all behind it, are numbered anew, in a new epoch

All this needs a broker that expects a certain number, and one that has nothing of a producer expects none: it would
take the second batch without the first. So only one batch is under way until one was taken, also in a new epoch, and
batches of two epochs are never under way together. (A broker forgets a producer that has been idle for a day,
`producer.id.expiration.ms`. Who sends after so long may find the first batch behind the second if just then the first
one is refused; it is still written once.)

A broker remembers five batches of a producer, so from the first one that it may get again to the last that it has got
there must not be more: `MOST_IN_FLIGHT`. Some of those behind a refused batch may be written and answered, if an
earlier try of it was written; they count as well. So what was sent is sent again one by one, and the window opens when
nothing is left of it (`PartitionQueue.window`).
"""

import threading
from collections.abc import Iterable
from itertools import takewhile

from hmb.client.connection import Connection
from hmb.client.errors import answered_error
from hmb.client.producing.batch import Batch, Identity, Number, PartitionQueue, Sequence
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.topics import TopicPartition

MOST_IN_FLIGHT = 5
LAST_EPOCH = 2**15 - 1
LAST_SEQUENCE = 2**31 - 1
LOST_TRACK = {  # what a broker says that expects other numbers
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}


class Identities:
    """Where batches get their numbers from, and which transaction they belong to; here: from nowhere, and to none."""

    transactional_id: str | None = None
    doomed: Exception | None = None  # why nothing that is queued shall be sent any more

    def identity(self, connection: Connection) -> Identity | None:
        """Who the producer is for the brokers; None: batches are not numbered."""
        return None

    def new_epoch(self, queue: PartitionQueue) -> None:
        """A partition needs to start from 0."""

    def join(self, partitions: Iterable[TopicPartition]) -> None:
        """Batches are about to be sent to these partitions."""

    def failed(self, error: Exception) -> None:
        """A batch is given up."""


class ProducerId(Identities):
    """Of an idempotent producer without transactions: any broker gives one out, and it is asked for once."""

    def __init__(self, *, required: bool) -> None:
        self._required = required  # else do without it where the broker has none
        self._lock = threading.Lock()  # guards the identity; held while a broker is asked
        self._identity: Identity | None = None

    def identity(self, connection: Connection) -> Identity | None:
        """Asks at the first time; None if the broker is too old (before Kafka 0.11).

        After 32767 epochs it asks again, perhaps with batches under way: that ends the connection, they are retried.
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
                self._identity = Identity(response.producer_id, response.producer_epoch)
            return self._identity

    def new_epoch(self, queue: PartitionQueue) -> None:
        """After 32767 epochs of a partition: a new producer id."""
        sequence = queue.sequence
        if sequence is None:
            return
        if sequence.epoch < LAST_EPOCH:
            sequence.epoch, sequence.next = sequence.epoch + 1, 0
            return
        queue.sequence = None
        with self._lock:
            if self._identity is sequence.identity:
                self._identity = None


def number(batch: Batch, identity: Identity) -> Number:
    """The batch's number: the next one of its partition."""
    sequence = batch.queue.sequence
    if sequence is None or sequence.identity is not identity:
        sequence = batch.queue.sequence = Sequence(identity, identity.producer_epoch)
    batch.number = Number(identity.producer_id, sequence.epoch, sequence.next)
    sequence.next = (sequence.next + batch.records.count) & LAST_SEQUENCE
    return batch.number


def is_of_current_epoch(batch: Batch) -> bool:
    """Whether what is numbered next follows in the epoch of this batch; also if nothing is numbered."""
    number, sequence = batch.number, batch.queue.sequence
    if number is None:
        return True
    return sequence is not None and number[:2] == (sequence.identity.producer_id, sequence.epoch)


def take_back(batch: Batch, behind: list[Batch], identities: Identities) -> None:
    """The batch is given up: what of its number, and of those of the batches `behind` it, which were sent?"""
    if batch.number is None:
        return
    doubtful = list(takewhile(lambda other: other.unresolved, behind)) if batch.unresolved else []
    refused = [batch, *behind[len(doubtful) :]]
    if is_of_current_epoch(batch):
        if any(other.unresolved for other in refused) or not _fills_the_rest(refused):
            identities.new_epoch(batch.queue)
        elif batch.queue.sequence is not None:
            batch.queue.sequence.next = batch.number.base_sequence
    _number_anew(refused)


def start_again(batch: Batch, behind: list[Batch], identities: Identities) -> None:
    """The broker has lost track, and the batch is certainly not written: it begins a new epoch."""
    if is_of_current_epoch(batch):
        identities.new_epoch(batch.queue)
    _number_anew([batch, *behind])


def _fills_the_rest(batches: list[Batch]) -> bool:
    """Whether these have all the numbers from the first one's on; else the broker has taken one out of turn."""
    first, sequence = batches[0].number, batches[0].queue.sequence
    if first is None or sequence is None:
        return False
    return (first.base_sequence + sum(other.records.count for other in batches)) & LAST_SEQUENCE == sequence.next


def _number_anew(batches: list[Batch]) -> None:
    """When they are sent; nothing can come any more of what was sent of them."""
    for batch in batches:
        batch.number, batch.unresolved = None, 0
