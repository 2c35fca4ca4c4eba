"""The beginning of your answer to lab 12: retention, compaction and recovery.

Complete `answer.py`, and check it with `hmb lab check 12`.
"""


def expired(segments, now, retention):
    """Return how many segments may be deleted because all their records are too old. Count from the oldest segment."""
    return 0


def compact(records, now, delete_retention):
    """Return the records (offset, key, value, timestamp) that compaction keeps."""
    return list(records)


def recover(data):
    """Return the payloads of all complete records at the beginning of a file."""
    return []
