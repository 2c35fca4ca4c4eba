"""The beginning of your answer to the second exercise of lab 12: log compaction with little memory.

Complete `second.py`, and check it with `hmb lab check 12 --second`.
"""


def dirty_ratio(records, checkpoint):
    """Return the number of bytes in the dirty records, divided by the number of bytes in all records.

    A record is dirty if its offset is at least `checkpoint`.
    """
    return 1.0


def dirtiest(logs, min_ratio):
    """Return the name of the log with the greatest dirty ratio, or None if all ratios are below `min_ratio`.

    The dictionary `logs` maps the name of each log to the arguments of `dirty_ratio`: a pair
    (records, checkpoint).
    """
    return next(iter(logs), None)


def clean(records, checkpoint, map_size):
    """Return the records that one round of cleaning keeps, and the checkpoint for the next round.

    Read records from offset `checkpoint` on. Store each key's greatest offset in a map, and stop before the map
    has more than `map_size` keys. Then go through the whole log, and remove each record at a lower offset than
    the map contains for its key.
    """
    latest = {key: offset for offset, key, _ in records}
    return [record for record in records if latest[record[1]] == record[0]], len(records)
