"""Numbers by which a broker knows a batch again, so that a retry is not written twice (KIP-98).

An answer may get lost after the batch was written; the producer sends it again. So it asks for a *producer id* once,
and numbers the records of each partition from 0 on. The broker expects the next *sequence number*: a lower one means
that it has the batch already, and the second is dropped; a higher one is a gap, and is refused.

A batch that is given up leaves a gap, and perhaps a copy still under way, in the buffers of a dying connection, that
could be written behind its successors. Both are solved by the *producer epoch* (KIP-360): the partition's next batch
has a higher one and starts from 0 again, and the broker refuses whatever comes with a lower epoch after that. No broker
has to be asked for it. A batch that was refused for certain leaves no gap: its numbers are used for the next one.
"""

import threading
from collections.abc import Iterable

from hmb.client.batch import Batch, Identity, Number, Sequence
from hmb.client.connection import Connection
from hmb.client.errors import answered_error
from hmb.client.metadata import TopicPartition
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

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

    def new_epoch(self, sequence: Sequence) -> None:
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
        """Asks at the first time; None if the broker is too old (before Kafka 0.11)."""
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

    def new_epoch(self, sequence: Sequence) -> None:
        """After 32767 epochs of a partition: a new producer id."""
        if sequence.epoch < LAST_EPOCH:
            sequence.epoch, sequence.next = sequence.epoch + 1, 0
            return
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


def rewind(batch: Batch) -> None:
    """The broker has refused the batch: what goes next takes its number."""
    if batch.number is not None and batch.queue.sequence is not None:
        batch.queue.sequence.next = batch.number.base_sequence
        batch.number = None


def take_back(batch: Batch, identities: Identities) -> None:
    """The batch is given up: let the next one have its number, unless a copy may still be written."""
    if not batch.unresolved:
        rewind(batch)
    elif batch.number is not None and batch.queue.sequence is not None:
        identities.new_epoch(batch.queue.sequence)
        batch.number = None
