"""The beginning of your answer to lab 13: sequence numbers and transactions.

Complete `answer.py`, and check it with `hmb lab check 13`.
"""


class OutOfOrder(Exception):
    """The error for a batch that is neither the producer's next batch nor a copy of a recent batch.

    The next batch begins with the sequence number after the producer's last record. For example, if the last
    record has the number 9, the next batch must begin with 10.

    The first batch of a producer, and the first batch of a new epoch, must begin with 0.
    """


class Fenced(Exception):
    """The error for a batch of an old epoch: the partition has already seen a newer epoch of the producer."""


class Partition:
    """The state of one partition: its end offset, and the last batches of each producer."""

    def __init__(self):
        self.end_offset = 0

    def append(self, producer_id, epoch, first_sequence, count):
        """Check a batch of `count` records, append it, and return the offset of its first record."""
        offset = self.end_offset
        self.end_offset += count
        return offset


def read_committed(log):
    """Return the offsets of the records that a consumer with the isolation level `read_committed` gets."""
    return [offset for offset, (kind, _) in enumerate(log) if kind == "record"]
