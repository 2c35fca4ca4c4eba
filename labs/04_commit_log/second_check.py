"""Tests for the second exercise of lab 4.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""


class CountingList(list):
    """A list that counts how many of its items are read."""

    reads = 0

    def __getitem__(self, index):
        found = super().__getitem__(index)
        self.reads += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self):
        for number in range(len(self)):
            yield self[number]


def indexed(answer, timestamps, interval):
    """Return a log with these timestamps, and an index to which all records of the log were added."""
    index = answer.TimeIndex(interval)
    for offset, timestamp in enumerate(timestamps):
        index.add(offset, timestamp)
    index.entries = CountingList(index.entries)
    return CountingList(timestamps), index


def compare(answer, timestamps, interval, times):
    for time in times:
        records, index = indexed(answer, timestamps, interval)
        expected = next((offset for offset, each in enumerate(timestamps) if each >= time), None)
        found = index.find(records, time)
        case = f"timestamps {timestamps}, interval {interval}"
        assert found == expected, f"{case}: find(records, {time}) returns {found!r} (right: {expected!r})"


def test_sorted_timestamps(answer):
    """`find` returns the offset of the first record at or after a time, or None if no such record exists."""
    for interval in (1, 2, 4, 10):
        compare(answer, [], interval, [0])
        compare(answer, [10, 20, 30, 40, 50], interval, [0, 10, 11, 20, 35, 50, 51])
        compare(answer, [10, 10, 10, 20], interval, [10, 20])


def test_unsorted_timestamps(answer, rng):
    """`find` returns the right offset even if the timestamps are not sorted.

    Producers choose the timestamps, so a record can have an earlier timestamp than the record before it.
    """
    compare(answer, [10, 40, 20, 30, 50], 2, [15, 25, 35, 45])
    compare(answer, [50, 10, 10, 10, 20, 60], 2, [5, 15, 50, 55])
    for number in range(150):
        timestamps = [rng.randrange(60) for _ in range(2 + number // 5)]
        compare(answer, timestamps, rng.randrange(1, 6), [rng.randrange(62) for _ in range(5)])


def test_entries(answer, rng):
    """The index has one entry for every `interval` records, and its entries are sorted."""
    for interval in (1, 3, 10):
        timestamps = [rng.randrange(1000) for _ in range(60)]
        _, index = indexed(answer, timestamps, interval)
        entries, most = list(index.entries), 60 // interval
        case = f"60 records, interval {interval}"
        assert len(entries) == most, f"{case}: `entries` has {len(entries)} entries (right: {most})"
        is_sorted = entries == sorted(entries)
        assert is_sorted, f"{case}: `entries` is not sorted, so a binary search fails: {entries[:6]}..."


def test_few_reads(answer, rng):
    """If 10,000 records have 1,000 index entries, `find` reads at most 12 entries and at most 10 records."""
    now, timestamps = 0, []
    for _ in range(10_000):
        now += rng.randrange(10)
        timestamps.append(now - rng.choice([0, 0, 40]))
    for time in [0, now // 3, now // 2, now - 1, now + 1, *(rng.randrange(now) for _ in range(20))]:
        records, index = indexed(answer, timestamps, 10)
        index.find(records, time)
        case = f"10,000 records with {len(index.entries):,} entries, find(records, {time})"
        assert index.entries.reads <= 12, f"{case} reads {index.entries.reads:,} entries; use a binary search"
        why = "begin after the last entry that is too early"
        assert records.reads <= 10, f"{case} reads {records.reads:,} records; {why}"
