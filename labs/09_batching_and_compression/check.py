"""Tests for the requirements of lab 9.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import zlib


def compare(answer, name, arguments, expected):
    found = getattr(answer, name)(*arguments)
    call = f"{name}({', '.join(map(repr, arguments))})"
    assert found == expected, f"{call} returns {found!r} (right: {expected!r})"


def batches_of(answer, records, linger, batch_size):
    found = answer.cut_batches(list(records), linger, batch_size)
    return [(time, list(sizes)) for time, sizes in found], f"cut_batches({records}, {linger}, {batch_size})"


def test_a_full_batch(answer):
    """`cut_batches` ends a batch when the next record does not fit into it."""
    for records, expected in (
        ([(0, 10)], [(5, [10])]),
        ([(0, 10), (1, 10)], [(5, [10, 10])]),
        ([(0, 60), (1, 40)], [(5, [60, 40])]),
        ([(0, 60), (1, 41)], [(1, [60]), (6, [41])]),
        ([(0, 60), (1, 60), (2, 60)], [(1, [60]), (2, [60]), (7, [60])]),
        ([(0, 500), (1, 10)], [(1, [500]), (6, [10])]),
        ([], []),
    ):
        found, case = batches_of(answer, records, 5, 100)
        assert found == expected, f"{case} returns {found} (right: {expected})"


def test_linger(answer):
    """`cut_batches` ends a batch when the first record of the batch has waited for the time `linger`."""
    for records, linger, expected in (
        ([(0, 10), (4, 10), (6, 10)], 5, [(5, [10, 10]), (11, [10])]),
        ([(0, 10), (5, 10)], 5, [(5, [10]), (10, [10])]),
        ([(0, 10), (3, 10), (6, 10)], 4, [(4, [10, 10]), (10, [10])]),
        ([(0, 10), (50, 10)], 5, [(5, [10]), (55, [10])]),
        ([(0, 10), (0, 10), (1, 10)], 0, [(0, [10]), (0, [10]), (1, [10])]),
        ([(0, 60), (7, 60)], 5, [(5, [60]), (12, [60])]),
    ):
        found, case = batches_of(answer, records, linger, 100)
        assert found == expected, f"{case} returns {found} (right: {expected})"


def test_random_batches(answer, rng):
    """`cut_batches` keeps the order of the records.

    A batch has at most `batch_size` bytes, unless it contains only one record. No record waits longer than the
    time `linger`.
    """
    for _ in range(200):
        times = sorted(rng.randrange(60) for _ in range(rng.randrange(1, 12)))
        records = [(time, rng.randrange(1, 60)) for time in times]
        linger = rng.randrange(1, 20)
        found, case = batches_of(answer, records, linger, 100)
        sizes = [size for _, batch in found for size in batch]
        assert sizes == [size for _, size in records], f"{case} returns {found}: records are missing or exchanged"
        position = 0
        for time, batch in found:
            first = records[position][0]
            assert sum(batch) <= 100, f"{case} returns {found}: the batch {batch} is larger than 100"
            assert first <= time <= first + linger, f"{case} returns {found}: the batch {batch} leaves at {time}"
            position += len(batch)
            is_full = position < len(records) and sum(batch) + records[position][1] > 100
            assert time == first + linger or is_full, f"{case} returns {found}: the batch {batch} leaves too early"


def test_compression(answer, rng):
    """`compressed_sizes` compresses the values of each batch together."""
    values = [b'{"shop": "north", "order": %d}' % rng.randrange(10**6) for _ in range(25)]
    for count in (1, 10, 25, 100):
        expected = []
        for begin in range(0, 25, count):
            expected.append(len(zlib.compress(b"".join(values[begin : begin + count]))))
        found = list(answer.compressed_sizes(list(values), zlib.compress, count))
        assert found == expected, f"25 values, batches of {count}, zlib: the sizes are {found} (right: {expected})"


def test_frontier(answer, rng):
    """`frontier` returns the runs that no other run beats. It sorts them by latency, with the lowest one first.

    Each run has a latency and a rate. A lower latency is better, and a higher rate is better. Run A beats run B if
    A is better in one of these two values, and at least as good in the other one.
    """
    a, b, c, d = ("a", 1.0, 100.0), ("b", 2.0, 300.0), ("c", 3.0, 200.0), ("d", 4.0, 400.0)
    compare(answer, "frontier", ([a],), [a])
    compare(answer, "frontier", ([b, a],), [a, b])
    compare(answer, "frontier", ([a, b, c],), [a, b])
    compare(answer, "frontier", ([d, c, b, a],), [a, b, d])
    compare(answer, "frontier", ([("slow", 1.0, 50.0), a],), [a])
    for _ in range(100):
        latencies, rates = rng.sample(range(1, 100), 6), rng.sample(range(1, 100), 6)
        runs = [(f"run {number}", latencies[number], rates[number]) for number in range(6)]
        kept = [run for run in runs if not any(other[1] < run[1] and other[2] > run[2] for other in runs)]
        compare(answer, "frontier", (runs,), sorted(kept, key=lambda run: run[1]))


def test_choose(answer):
    """`choose` ignores a run if its latency is above `max_latency` or its rate is below `min_rate`.

    Of the remaining runs, `choose` finds the run with the highest rate, and returns the settings of this run.
    If no run remains, `choose` returns None.
    """
    runs = [("linger 0", 1.0, 100.0), ("linger 5", 5.0, 300.0), ("linger 50", 50.0, 400.0)]
    compare(answer, "choose", (runs, 10.0, 200.0), "linger 5")
    compare(answer, "choose", (runs, 5.0, 300.0), "linger 5")
    compare(answer, "choose", (runs, 100.0, 50.0), "linger 50")
    compare(answer, "choose", (runs, 1.0, 50.0), "linger 0")
    compare(answer, "choose", (runs, 2.0, 200.0), None)
    compare(answer, "choose", ([], 1.0, 1.0), None)
