"""The beginning of your answer to the second exercise of lab 13: a transaction coordinator.

Complete `second.py`, and check it with `hmb lab check 13 --second`.
"""


class Fenced(Exception):
    """Raised for a call with an old epoch: a later call of `begin` for the same name has returned a newer epoch."""


class Ended(Exception):
    """The error for a call that would change a transaction after its end."""


class Coordinator:
    """Ends transactions. It writes the same marker, commit or abort, to each partition of a transaction."""

    def __init__(self, journal, write_marker):
        self.journal, self.write_marker = journal, write_marker
        self.epochs, self.partitions = {}, {}

    def begin(self, name):
        """Abort the open transaction of the producer `name`, if one exists. Begin a new one, and return its epoch."""
        self.epochs[name], self.partitions[name] = 0, []
        return 0

    def add(self, name, epoch, partition):
        """Add a partition to the transaction, before the producer writes its first record to this partition."""
        self.partitions[name].append(partition)

    def end(self, name, epoch, outcome):
        """End the transaction with the outcome "commit" or "abort", and write a marker to each of its partitions."""
        for partition in self.partitions[name]:
            self.write_marker(partition, name, epoch, outcome)
