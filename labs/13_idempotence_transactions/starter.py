"""The beginning of your answer to lab 13: sequence numbers and transactions.

Complete this file, and check it with `hmb lab check 13`.
"""


class OutOfOrder(Exception):
    """The batch does not continue the last one of its producer."""


class Fenced(Exception):
    """A newer epoch of the producer is known."""


class Partition:
    """The state of one partition: its end, and the producers that have written to it."""

    def __init__(self):
        self.end_offset = 0

    def append(self, producer_id, epoch, first_sequence, count):
        """Check a batch, and return the offset of its first record."""
        offset = self.end_offset
        self.end_offset += count
        return offset


def read_committed(log):
    """Return the offsets of the records that a reader of committed records gets."""
    return [offset for offset, (kind, _) in enumerate(log) if kind == "record"]
