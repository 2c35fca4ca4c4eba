"""The beginning of your answer to the second exercise of lab 13: a transaction coordinator.

Complete `second.py`, and check it with `hmb lab check 13 --second`.
"""


class Fenced(Exception):
    """The error for a call of `add` or `end` with an old epoch.

    For example, the first call of `begin` for a name returns epoch 0, and the second call returns epoch 1. A
    call of `end` with epoch 0 then raises `Fenced`.
    """


class Ended(Exception):
    """The error for a call that would change a transaction after its end."""


class Coordinator:
    """Ends transactions. It writes the same marker, commit or abort, to each partition of a transaction."""

    def __init__(self, journal, write_marker):
        self.journal, self.write_marker = journal, write_marker
        self.epochs, self.partitions = {}, {}

    def begin(self, name):
        """Begin a transaction of the producer `name`, and return the new epoch of this producer.

        If the producer has an open transaction, abort the open transaction before the new one begins.
        """
        self.epochs[name], self.partitions[name] = 0, []
        return 0

    def add(self, name, epoch, partition):
        """Add a partition to the transaction, before the producer writes its first record to this partition."""
        self.partitions[name].append(partition)

    def end(self, name, epoch, outcome):
        """End the transaction with the outcome "commit" or "abort", and write a marker to each of its partitions."""
        for partition in self.partitions[name]:
            self.write_marker(partition, name, epoch, outcome)
