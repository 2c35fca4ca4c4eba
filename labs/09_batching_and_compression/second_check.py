"""Tests for the second exercise of lab 9.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""

import zlib
from collections import Counter


def compare(answer, name, arguments, expected):
    found = getattr(answer, name)(*arguments)
    found = list(found) if isinstance(found, tuple) else found
    shown = ", ".join("zlib.crc32" if argument is zlib.crc32 else repr(argument) for argument in arguments)
    assert found == expected, f"{name}({shown}) returns {found!r} (right: {expected!r})"


def test_keys(answer, rng):
    """`place` sends all records with the same key to the partition `hash_of(key) % partitions`."""
    for partitions in (1, 3, 8):
        keys = [rng.choice([b"anna", b"ben", b"carla", b"dan", b""]) for _ in range(12)]
        expected = [zlib.crc32(key) % partitions for key in keys]
        compare(answer, "place", ([(key, 10) for key in keys], partitions, 100, zlib.crc32), expected)


def test_sticky(answer):
    """`place` puts records without a key into one partition, and adds up their sizes.

    When the sum is at least `batch_size`, the next record without a key goes to the next partition.
    """
    for sizes, partitions, expected in (
        ([10, 10, 10], 3, [0, 0, 0]),
        ([50, 50, 10], 3, [0, 0, 1]),
        ([50, 49, 10, 10], 3, [0, 0, 0, 1]),
        ([300, 10], 3, [0, 1]),
        ([100, 100, 100, 100], 3, [0, 1, 2, 0]),
        ([100, 100], 1, [0, 0]),
    ):
        compare(answer, "place", ([(None, size) for size in sizes], partitions, 100, zlib.crc32), expected)


def test_mixed(answer, rng):
    """`place` counts only the bytes of records without a key.

    For example, `batch_size` is 100. Three records arrive: 60 bytes without a key, 60 bytes with a key, and
    40 bytes without a key. The next record without a key goes to the next partition, because 60 + 40 is 100.
    """
    compare(answer, "place", ([(None, 60), (b"anna", 60), (None, 30), (None, 10), (None, 10)], 4, 100, zlib.crc32),
            [0, zlib.crc32(b"anna") % 4, 0, 0, 1])  # fmt: skip
    for _ in range(100):
        records = [(rng.choice([None, None, b"anna", b"ben"]), rng.randrange(1, 70)) for _ in range(12)]
        expected, sticky, placed = [], 0, 0
        for key, size in records:
            expected.append(sticky if key is None else zlib.crc32(key) % 3)
            placed += size if key is None else 0
            if placed >= 100:
                sticky, placed = (sticky + 1) % 3, 0
        compare(answer, "place", (records, 3, 100, zlib.crc32), expected)


def test_batches(answer, rng):
    """`count_batches` forms the batches of each partition separately.

    A partition's batch ends when the partition's next record does not fit into this batch.
    """
    for sizes, places, expected in (
        ([], [], 0),
        ([50, 50], [0, 0], 1),
        ([50, 51], [0, 0], 2),
        ([50, 50], [0, 1], 2),
        ([50, 50, 50, 50], [0, 1, 0, 1], 2),
        ([50, 50, 1, 50], [0, 0, 0, 1], 3),
        ([500, 10], [0, 0], 2),
    ):
        compare(answer, "count_batches", ([(None, size) for size in sizes], places, 100), expected)
    for _ in range(100):
        sizes, places = [rng.randrange(1, 70) for _ in range(12)], [rng.randrange(3) for _ in range(12)]
        expected = 0
        for partition in set(places):
            room = -1
            for size, place in zip(sizes, places, strict=True):
                if place == partition:
                    expected += size > room
                    room = (100 if size > room else room) - size
        compare(answer, "count_batches", ([(None, size) for size in sizes], places, 100), expected)


def test_choice(answer, rng):
    """`choose(waiting, number)` returns the partition whose ticket wins in a lottery.

    Fewer waiting batches mean more tickets. Partition p has `waiting[p]` waiting batches, and gets
    `max(waiting) - waiting[p] + 1` tickets. If `waiting` is `[2, 0, 1]`, partition 0 gets ticket 0, partition 1
    gets tickets 1 to 3, and partition 2 gets tickets 4 and 5.

    The random number `number` selects one of these 6 tickets: ticket `number % 6` wins. If `number` is 8,
    ticket 2 wins, and `choose` returns 1.
    """
    for waiting, tickets in (([0, 0], [1, 1]), ([0, 3], [4, 1]), ([2, 0, 1], [1, 3, 2]), ([5], [1])):
        expected = [partition for partition, count in enumerate(tickets) for _ in range(count)]
        found = [answer.choose(list(waiting), number) for number in range(len(expected))]
        case = f"waiting batches {waiting}, so the tickets are {tickets}"
        assert found == expected, f"{case}: choose with the numbers 0, 1, ... returns {found} (right: {expected})"
    for _ in range(50):
        waiting = [rng.randrange(6) for _ in range(5)]
        tickets = [max(waiting) + 1 - count for count in waiting]
        found = Counter(answer.choose(list(waiting), number) for number in range(3 * sum(tickets)))
        found = [found[partition] // 3 for partition in range(5)]
        assert found == tickets, f"waiting batches {waiting}: the tickets are {found} (right: {tickets})"
