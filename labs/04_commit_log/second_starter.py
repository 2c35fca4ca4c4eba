"""The beginning of your answer to the second exercise of lab 4: look-ups by time.

Complete `second.py`, and check it with `hmb lab check 4 --second`.
"""


class TimeIndex:
    """A sparse index of a log: it finds the first record with a timestamp at or after a given time."""

    def __init__(self, interval):
        self.interval = interval
        self.entries = []

    def add(self, offset, timestamp):
        """Append one entry to the index after every `interval` records.

        The log calls this method for each record. If `interval` is 10, every tenth call appends an entry.
        """

    def find(self, records, time):
        """Return the offset of the first record whose timestamp is `time` or later.

        If no such record exists, return None. The list `records` contains one timestamp for each offset. For
        example, `records[3]` is the timestamp of the record at offset 3.
        """
        for offset in range(len(records)):
            if records[offset] >= time:
                return offset
        return None
