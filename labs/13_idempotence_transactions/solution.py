"""One correct answer to lab 13: sequence numbers and transactions."""

from collections import deque


class OutOfOrder(Exception):
    pass


class Fenced(Exception):
    pass


class Partition:
    def __init__(self):
        self.end_offset = 0
        self.epochs = {}  # the newest epoch of each producer, by producer id
        self.batches = {}  # by producer id: the last five batches as (first sequence number, count, offset)

    def append(self, producer_id, epoch, first_sequence, count):
        known = self.epochs.get(producer_id, -1)
        if epoch < known:
            raise Fenced(f"epoch {known} is known")
        batches = self.batches.get(producer_id, deque(maxlen=5)) if epoch == known else deque(maxlen=5)
        for sequence, length, offset in batches:
            if (sequence, length) == (first_sequence, count):
                return offset
        expected = batches[-1][0] + batches[-1][1] if batches else 0
        if first_sequence != expected:
            raise OutOfOrder(f"sequence {expected} is next")
        offset = self.end_offset
        batches.append((first_sequence, count, offset))
        self.epochs[producer_id], self.batches[producer_id] = epoch, batches
        self.end_offset += count
        return offset


def read_committed(log):
    outcomes = {}  # for each offset of a transaction's record: "commit", "abort", or None while the transaction is open
    # The next loop reads the log backwards, so it reads a transaction's marker ("commit" or "abort") before the
    # transaction's records. `ends` maps each producer id to the marker that the loop has read last for this producer.
    ends = {}
    for offset in range(len(log) - 1, -1, -1):
        kind, producer_id = log[offset]
        if kind != "record":
            ends[producer_id] = kind
        elif producer_id is not None:
            outcomes[offset] = ends.get(producer_id)
    found = []
    for offset, (kind, producer_id) in enumerate(log):
        if kind != "record":
            continue
        if producer_id is not None and outcomes[offset] is None:
            break  # The transaction is open, so `offset` is the last stable offset.
        if producer_id is None or outcomes[offset] == "commit":
            found.append(offset)
    return found
