"""Tests for the requirements of lab 14.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

from collections import Counter

WORDS = ["hail", "rain", "snow"]


def test_counts(answer, rng):
    """`merge_counts` returns each word's total count in two dictionaries, and changes neither dictionary."""
    cases = [({}, {}), ({"hail": 1}, {}), ({"hail": 1}, {"hail": 2}), ({"hail": 1}, {"rain": 2})]
    cases += [tuple(dict(Counter(rng.choices(WORDS, k=rng.randrange(6)))) for _ in range(2)) for _ in range(30)]
    for a, b in cases:
        before = dict(a), dict(b)
        found = answer.merge_counts(a, b)
        expected = dict(Counter(before[0]) + Counter(before[1]))
        assert found == expected, f"merge_counts({before[0]}, {before[1]}) returns {found!r} (right: {expected})"
        assert (a, b) == before, f"merge_counts{before} changes its arguments to {a} and {b}"


def test_means(answer):
    """`merge_means` merges two pairs (sum, number of values) by adding their items.

    For example, `(6, 2)` and `(9, 1)` become `(15, 3)`.
    """
    for a, b, expected in (((0, 0), (6, 2), (6, 2)), ((6, 2), (9, 1), (15, 3)), ((6, 2), (0, 0), (6, 2))):
        found = tuple(answer.merge_means(a, b))
        assert found == expected, f"merge_means({a}, {b}) returns {found!r} (right: {expected})"


def cut(a, b):
    """Add each word's counts in `a` and `b`, and keep the two most frequent words."""
    merged = Counter(dict(a)) + Counter(dict(b))
    return tuple(sorted(merged.most_common(2)))


def test_laws(answer):
    """`broken_law` returns the name of the first law that `merge` breaks. If `merge` breaks no law, it returns None.

    The laws are checked in this order: identity, associativity, commutativity.
    """
    top = [(), (("hail", 2), ("rain", 1)), (("rain", 3), ("snow", 2)), (("hail", 3), ("snow", 2))]
    cases = [
        ("whole numbers and +", 0, lambda a, b: a + b, [0, 1, 5, -2], None),
        ("sets and union", frozenset(), lambda a, b: a | b, [frozenset(), frozenset("a"), frozenset("ab")], None),
        ("numbers and max, with 0 as the empty state", 0, max, [-3, 0, 4], "identity"),
        ("numbers and -", 0, lambda a, b: a - b, [0, 1], "identity"),
        ("numbers and their mean", None, _mean, [1, 2, 6], "associativity"),
        ("floats and +", 0.0, lambda a, b: a + b, [0.1, 0.2, 0.3], "associativity"),
        ("texts and +", "", lambda a, b: a + b, ["", "a", "b"], "commutativity"),
        ("counts that are cut to two words", (), cut, top, "associativity"),
    ]
    for name, empty, merge, states, expected in cases:
        found = answer.broken_law(empty, merge, states)
        assert found == expected, f"{name}, states {states}: broken_law returns {found!r} (right: {expected!r})"


def _mean(a, b):
    if a is None or b is None:
        return b if a is None else a
    return (a + b) / 2


def streams(rng, number):
    """Return two lists of random words, one for each partition.

    `number` is the number of the test case, from 0. Each list has 1 to `2 + number // 20` words.
    """
    return [rng.choices(WORDS, k=rng.randrange(1, 3 + number // 20)) for _ in range(2)]


def arrivals(rng, words, begin):
    """Return the tuples (partition, offset, word) of two partitions in a random order of arrival.

    Within each partition, the tuples keep the order of their offsets. For example, `words[0]` is the list of all
    words of partition 0, and the tuples of this partition begin at offset `begin[0]`.
    """
    order = [partition for partition in range(2) for _ in words[partition][begin[partition] :]]
    rng.shuffle(order)
    following = list(begin)
    found = []
    for partition in order:
        found.append((partition, following[partition], words[partition][following[partition]]))
        following[partition] += 1
    return found


def counts(words, clock):
    return dict(Counter(word for partition in range(2) for word in words[partition][: clock[partition]]))


def send(bolt, tuples):
    for each in tuples:
        bolt.receive(*each)


def test_replays(answer, rng):
    """`receive` counts each tuple only once, even if it receives the tuple again after a crash."""
    for number in range(100):
        words = streams(rng, number)
        tuples = arrivals(rng, words, [0, 0])
        cut_at = rng.randrange(len(tuples) + 1)
        bolt = answer.Bolt(2)
        send(bolt, tuples[:cut_at])
        send(bolt, tuples)
        expected = counts(words, [len(each) for each in words])
        case = f"{tuples[:cut_at]}, and then all of {tuples}"
        assert bolt.state == expected, f"the bolt receives {case}; it counts {bolt.state} (right: {expected})"


def test_snapshots(answer, rng):
    """`end_snapshot` returns the word counts of exactly the tuples that belong to the snapshot.

    The argument `clock` of `begin_snapshot` contains an offset for each partition. The snapshot consists of the tuples
    below these offsets. With `[5, 2]`, these are the tuples at offsets 0 to 4 of partition 0, and at offsets 0 and 1 of
    partition 1. Other tuples can arrive between these tuples.
    """
    for number in range(200):
        words = streams(rng, number)
        clock = [rng.randrange(1, len(each) + 1) for each in words]
        tuples = arrivals(rng, words, [0, 0])
        begin = min(at for at, (partition, offset, _) in enumerate(tuples) if offset == clock[partition] - 1)
        bolt = answer.Bolt(2)
        send(bolt, tuples[:begin])
        bolt.begin_snapshot(list(clock))
        send(bolt, tuples[begin:])
        found, expected = bolt.end_snapshot(), counts(words, clock)
        case = f"{tuples[:begin]}, begin_snapshot({clock}), {tuples[begin:]}"
        assert found == expected, f"{case}: end_snapshot returns {found!r} (right: {expected})"
        expected = counts(words, [len(each) for each in words])
        assert bolt.state == expected, f"{case}, end_snapshot: the state is {bolt.state!r} (right: {expected})"


def test_a_crash(answer, rng):
    """After a crash, the bolt receives some tuples again.

    The counts then equal the counts of a program that never crashes.
    """
    for number in range(200):
        words = streams(rng, number)
        ends = [len(each) for each in words]
        clock = [rng.randrange(each + 1) for each in ends]
        bolt, expected = answer.Bolt(2), counts(words, ends)
        bolt.begin_snapshot(list(clock))
        send(bolt, arrivals(rng, [each[:end] for each, end in zip(words, clock, strict=True)], [0, 0]))
        saved = dict(bolt.end_snapshot())
        interrupted = [rng.randrange(begin, end + 1) for begin, end in zip(clock, ends, strict=True)]
        bolt.begin_snapshot(list(interrupted))
        send(bolt, arrivals(rng, words, clock))
        bolt.restore(dict(saved), list(clock))
        tuples = arrivals(rng, words, [max(0, each - 1) for each in clock])
        send(bolt, tuples)
        case = f"begin_snapshot({interrupted}), a crash, restore({saved}, {clock}), {tuples}"
        assert bolt.state == expected, f"{case}: the state is {bolt.state!r} (right: {expected})"
