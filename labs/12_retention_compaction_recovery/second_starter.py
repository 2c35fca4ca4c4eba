"""The beginning of your answer to the second exercise of lab 12: a cleaner with a small memory.

Complete `second.py`, and check it with `hmb lab check 12 --second`.
"""


def dirty_ratio(records, checkpoint):
    """Return the number of bytes in the dirty records, divided by the number of bytes in all records.

    A record is dirty if its offset is at least `checkpoint`.
    """
    return 1.0


def dirtiest(logs, min_ratio):
    """Return the name of the log that the cleaner cleans next, or None. `logs` maps names to (records, checkpoint)."""
    return next(iter(logs), None)


def clean(records, checkpoint, map_size):
    """Clean a log once. Return the remaining records and the new checkpoint.

    Records at offsets below `checkpoint` are already clean. The map with the last offset of each key has room for
    `map_size` keys.
    """
    latest = {key: offset for offset, key, _ in records}
    return [record for record in records if latest[record[1]] == record[0]], len(records)
