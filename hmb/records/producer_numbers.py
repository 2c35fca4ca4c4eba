"""The producer id, the producer epoch and the sequence number in the header of a batch (KIP-98).

A broker assigns a producer id and a producer epoch to each idempotent producer. The producer counts the records that it
sends to a partition, and writes the sequence number of the first record into the batch. A broker that receives a batch
twice recognizes the batch by these three numbers, and does not write the batch again. A batch of a producer without
idempotence contains -1 in all three fields.

For example, the producer with id 7 and epoch 0 sends a batch of 10 records and then a batch of 5 records to one
partition. The numbers (id, epoch, first sequence number) are (7, 0, 0) for the first batch, and (7, 0, 10) for the
second batch.
"""

from __future__ import annotations

from typing import NamedTuple

from hmb.protocol.enums import INT32_MAX, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE


class ProducerIdAndEpoch(NamedTuple):
    """The id and the epoch of a producer. Each batch of an idempotent producer contains both.

    If the broker knows a greater epoch of the same producer id, the broker rejects the batch.
    """

    producer_id: int
    epoch: int


class BatchNumbers(NamedTuple):
    """The producer id, the producer epoch, and the sequence number of the first record of a batch."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


# If a producer is not idempotent, its batches have no producer id, no epoch and no sequence number.
NO_BATCH_NUMBERS = BatchNumbers(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


def increment_sequence(sequence: int, increment: int) -> int:
    """Add `increment`, which may be negative, to a sequence number, and return the new sequence number.

    Sequence numbers end at 2^31 - 1 and then begin at 0 again. `RecordBatch.last_sequence` repeats the computation
    instead of calling this function, because a call takes time.
    """
    return (sequence + increment) & INT32_MAX
