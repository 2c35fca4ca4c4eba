"""The beginning of your answer to lab 6: a reader of segments.

Complete `answer.py`, and check it with `hmb lab check 6`.
"""


def read_index(data, base_offset):
    """Return the entries of an index file as a list of pairs (offset, position)."""
    return []


def lookup(entries, offset):
    """Return the position at which the scan for `offset` begins. Use a binary search."""
    return 0


def find_batch(log, position, offset):
    """Scan the log from `position` on. Return the position of the batch that contains `offset`, or None."""
    raise NotImplementedError("find_batch is not written yet")


def wrong_entries(log, entries):
    """Return a list of all numbers `i` for which no complete batch in `log` matches `entries[i]`."""
    return []
