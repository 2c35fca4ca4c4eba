"""The beginning of your answer to lab 12: retention, compaction and recovery.

Complete `answer.py`, and check it with `hmb lab check 12`.
"""


def expired(segments, now, retention):
    """Return how many of the oldest segments retention may delete."""
    return 0


def compact(records, now, delete_retention):
    """Return the records (offset, key, value, timestamp) that compaction keeps."""
    return list(records)


def recover(data):
    """Return the payloads of all complete records at the beginning of a file."""
    return []
