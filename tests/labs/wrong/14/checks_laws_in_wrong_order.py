"""A wrong answer to lab 14: `broken_law` checks commutativity before associativity."""


def merge_counts(a, b):
    return {word: a.get(word, 0) + b.get(word, 0) for word in a.keys() | b.keys()}


def merge_means(a, b):
    return a[0] + b[0], a[1] + b[1]


def broken_law(empty, merge, states):
    if any(merge(empty, a) != a or merge(a, empty) != a for a in states):
        return "identity"
    if any(merge(a, b) != merge(b, a) for a in states for b in states):
        return "commutativity"
    triples = [(a, b, c) for a in states for b in states for c in states]
    if any(merge(merge(a, b), c) != merge(a, merge(b, c)) for a, b, c in triples):
        return "associativity"
    return None


class Bolt:
    def __init__(self, partitions):
        self.state = {}
        self.clock = [0] * partitions
        self.snapshot_clock = None
        self.above = {}  # the counts of the tuples that arrive during a snapshot but do not belong to it

    def receive(self, partition, offset, word):
        if offset < self.clock[partition]:
            return  # The tuple is replayed after a crash, and was already counted.
        self.clock[partition] = offset + 1
        is_above = self.snapshot_clock is not None and offset >= self.snapshot_clock[partition]
        counts = self.above if is_above else self.state
        counts[word] = counts.get(word, 0) + 1

    def begin_snapshot(self, clock):
        self.snapshot_clock = list(clock)

    def end_snapshot(self):
        below = dict(self.state)
        self.state = merge_counts(self.state, self.above)
        self.above, self.snapshot_clock = {}, None
        return below

    def restore(self, counts, clock):
        self.state, self.clock = dict(counts), list(clock)
        self.above, self.snapshot_clock = {}, None
