"""Tests for the requirements of lab 10.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import copy

NAMES = ["anna", "ben", "carla", "dan", "eve", "finn"]


def check_complete(result, partitions, consumers, case):
    """Check that each partition has exactly one owner, and that the load is even.

    The load is even if the numbers of partitions of any two consumers differ by at most one.
    """
    assert isinstance(result, dict), f"{case} returns {result!r} (right: a dictionary)"
    assert set(result) == set(consumers), f"{case} has an entry for each consumer; it returns {result!r}"
    for number in range(partitions):
        owners = [name for name in sorted(result) if number in result[name]]
        assert len(owners) == 1, f"{case} gives partition {number} to {owners or 'nobody'}: {result!r}"
    total = sum(len(numbers) for numbers in result.values())
    assert total == partitions, f"{case} contains partitions that do not exist, or one twice: {result!r}"
    for name, numbers in result.items():
        assert list(numbers) == sorted(numbers), f"{case}: the partitions of {name} are not sorted: {numbers!r}"
    sizes = [len(numbers) for numbers in result.values()]
    assert max(sizes) - min(sizes) <= 1, f"{case} is not even: {result!r}"


def test_ranges(answer):
    """`assign_range` assigns each partition to exactly one consumer.

    The partitions of a consumer are neighbors, for example 3, 4 and 5.
    """
    for count in range(1, 5):
        for partitions in range(9):
            case = f"assign_range({partitions}, {NAMES[:count]})"
            result = answer.assign_range(partitions, NAMES[:count])
            check_complete(result, partitions, NAMES[:count], case)
            for name, numbers in result.items():
                neighbors = list(range(numbers[0], numbers[0] + len(numbers))) if numbers else []
                assert list(numbers) == neighbors, f"{case}: the partitions of {name} are not neighbors: {numbers!r}"


def test_the_rest(answer, rng):
    """`assign_range` sorts the consumers by name, so their order in the argument has no effect.

    If the partitions cannot be divided evenly, the first consumers get one partition more than the others.
    """
    for consumers in (["b", "a"], ["c", "a", "b"], rng.sample(NAMES, 6)):
        case = f"assign_range(7, {consumers})"
        result = answer.assign_range(7, consumers)
        expected, begin = {}, 0
        for number, name in enumerate(sorted(consumers)):
            size = 7 // len(consumers) + (number < 7 % len(consumers))
            expected[name] = list(range(begin, begin + size))
            begin += size
        found = {name: list(result.get(name, [])) for name in sorted(consumers)}
        assert found == expected, f"{case} returns {found} (right: {expected})"


def cases(rng):
    """Yield arguments for `assign_sticky`: (previous, partitions, consumers). Small cases come first."""
    yield {}, 3, ["anna"]
    yield {}, 4, ["anna", "ben"]
    yield {"anna": [0, 1], "ben": [2, 3]}, 4, ["anna", "ben"]
    yield {"anna": [0, 1, 2, 3]}, 4, ["anna", "ben"]
    yield {"anna": [0], "ben": [1, 2]}, 3, ["anna", "ben"]
    yield {"anna": [0, 1], "ben": [2], "carla": [3]}, 4, ["ben", "carla"]
    yield {"anna": [0, 3], "ben": [1, 2]}, 6, ["anna", "ben", "carla"]
    for _ in range(150):
        before, partitions = rng.sample(NAMES, rng.randrange(1, 6)), rng.randrange(1, 14)
        numbers = list(range(rng.randrange(partitions + 1)))
        rng.shuffle(numbers)
        previous = {name: [] for name in before}
        for number in numbers:
            previous[rng.choice(before)].append(number)
        after = rng.sample(NAMES, rng.randrange(1, 6))
        yield {name: sorted(each) for name, each in previous.items()}, partitions, after


def test_sticky_is_complete(answer, rng):
    """`assign_sticky` assigns each partition to exactly one consumer.

    The load is even: each consumer has at most one partition more than any other.
    """
    for previous, partitions, consumers in cases(rng):
        case = f"assign_sticky({previous}, {partitions}, {consumers})"
        result = answer.assign_sticky(copy.deepcopy(previous), partitions, consumers)
        check_complete(result, partitions, consumers, case)


def most_kept(previous, partitions, consumers):
    """Return the largest number of partitions that can keep their owner.

    `previous` is the assignment before the rebalance. The rebalance must divide the partitions evenly: if three
    consumers share 7 partitions, they get 2, 2 and 3 of them.
    """
    each, rest = divmod(partitions, len(consumers))
    sizes = [len(previous.get(name, [])) for name in consumers]
    return sum(min(size, each) for size in sizes) + min(rest, sum(size > each for size in sizes))


def test_few_moves(answer, rng):
    """`assign_sticky` makes the load even, and changes the owner of as few partitions as possible."""
    for previous, partitions, consumers in cases(rng):
        result = answer.assign_sticky(copy.deepcopy(previous), partitions, consumers)
        kept = sum(len(set(previous.get(name, [])) & set(result[name])) for name in consumers)
        most = most_kept(previous, partitions, consumers)
        case = f"assign_sticky({previous}, {partitions}, {consumers})"
        assert kept == most, f"{case}: {most} partitions can keep their owner; {kept} do: {result}"


def test_the_same_result(answer, rng):
    """`assign_sticky` does not change `previous`.

    The result does not depend on the order of the names in `consumers`.
    """
    for previous, partitions, consumers in cases(rng):
        given = copy.deepcopy(previous)
        first = answer.assign_sticky(given, partitions, consumers)
        case = f"assign_sticky({previous}, {partitions}, {consumers})"
        assert given == previous, f"{case} changes `previous` to {given}"
        second = answer.assign_sticky(copy.deepcopy(previous), partitions, consumers[::-1])
        assert first == second, f"{case} returns {first}, and with the consumers in the opposite order {second}"
