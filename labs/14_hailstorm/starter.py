"""The beginning of your answer to lab 14: monoids and a bolt.

Complete `answer.py`, and check it with `hmb lab check 14`.
"""


def merge_counts(a, b):
    """Return a new dictionary that maps each word to its total count in the dictionaries `a` and `b`."""
    return {**a, **b}


def merge_means(a, b):
    """Merge two pairs (sum of values, number of values) into one. The mean of all values is sum / number."""
    return a


def broken_law(empty, merge, states):
    """Return the first of "identity", "associativity" and "commutativity" that `merge` breaks, or None."""
    return


class Bolt:
    """A word counter that stays correct after a crash."""

    def __init__(self, partitions):
        self.state = {}
        self.clock = [0] * partitions  # for each partition: the offset of the next tuple to count

    def receive(self, partition, offset, word):
        """Count the word at `offset` of a partition, unless the word at this offset was already counted."""
        self.state[word] = self.state.get(word, 0) + 1

    def begin_snapshot(self, clock):
        """Begin a snapshot. The list `clock` contains one end offset for each partition.

        With the list `[5, 2]`, the snapshot contains exactly the tuples at offsets 0 to 4 of partition 0, and
        at offsets 0 and 1 of partition 1.
        """

    def end_snapshot(self):
        """End the snapshot, and return the word counts of its tuples (see `begin_snapshot`)."""
        return dict(self.state)

    def restore(self, counts, clock):
        """Continue after a crash. `counts` and `clock` are the counts and the clock of the last snapshot."""
        self.state, self.clock = dict(counts), list(clock)
