"""Tests for the second exercise of lab 10.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""

import copy

NAMES = ["anna", "ben", "carla", "dan", "eve"]


def cases(rng):
    """Yield pairs: the present assignment `owned`, and the wanted assignment `target`. Small cases come first."""
    yield {"anna": [0, 1]}, {"anna": [0, 1]}
    yield {}, {"anna": [0, 1]}
    yield {"anna": [0]}, {"anna": [0, 1], "ben": [2]}
    yield {"anna": [0, 1]}, {"anna": [0], "ben": [1]}
    yield {"anna": [0, 1], "ben": [2]}, {"anna": [0, 1, 2]}
    yield {"anna": [0, 1, 2]}, {"anna": [0], "ben": [1], "carla": [2]}
    yield {"anna": [0, 1], "ben": [2, 3]}, {"anna": [0, 3], "ben": [1, 2]}
    for _ in range(200):
        pair = []
        for _ in range(2):
            names, numbers = sorted(rng.sample(NAMES, rng.randrange(1, 5))), list(range(rng.randrange(1, 10)))
            shares = {name: [] for name in names}
            for number in numbers:
                shares[rng.choice(names)].append(number)
            pair.append(shares)
        yield pair[0], pair[1]


def owners(assignment, number):
    return [name for name, numbers in sorted(assignment.items()) if number in numbers]


def calls(answer, rng):
    """Call `next_round` for each case. Yield `owned`, `target`, the result, and the call as a text."""
    for owned, target in cases(rng):
        found = answer.next_round(copy.deepcopy(owned), copy.deepcopy(target))
        case = f"next_round({owned}, {target})"
        assert isinstance(found, dict), f"{case} returns {found!r} (right: a dictionary)"
        missing = sorted(set(target) - set(found))
        assert not missing, f"{case} has no entry for {', '.join(missing)}: {found}"
        yield owned, target, found, case


def test_one_owner(answer, rng):
    """A partition gets a new owner only after its old owner has given it up in an earlier round."""
    for owned, target, found, case in calls(answer, rng):
        for name, numbers in found.items():
            for number in numbers:
                old = [each for each in owners(owned, number) if each != name and each in target]
                assert not old, f"{case}: {name} gets partition {number} while {old[0]} still owns it: {found}"


def test_nothing_stops(answer, rng):
    """`next_round` lets a consumer keep each partition that it has in both `owned` and `target`.

    The consumer gives up each partition that it has only in the present assignment `owned`.
    """
    for owned, target, found, case in calls(answer, rng):
        for name, numbers in target.items():
            for number in owned.get(name, []):
                if number in numbers:
                    assert number in found[name], f"{case}: {name} loses partition {number}, which it keeps: {found}"
                else:
                    assert number not in found[name], f"{case}: {name} still has partition {number}: {found}"


def test_free_partitions(answer, rng):
    """`next_round` assigns a partition to its new owner if no consumer of the group owns the partition now."""
    for owned, target, found, case in calls(answer, rng):
        assert set(found) == set(target), f"{case} has an entry for each consumer in the group: {found}"
        for name, numbers in target.items():
            assert list(found[name]) == sorted(found[name]), f"{case}: the partitions of {name} are not sorted: {found}"
            for number in numbers:
                if not any(each in target for each in owners(owned, number)):
                    assert number in found[name], f"{case}: partition {number} is free, and {name} does not get it"


def test_rounds(answer, rng):
    """`rounds` returns an empty list if `owned` equals `target`.

    If a partition moves between two consumers that stay in the group, `rounds` returns two assignments. In all other
    cases, `rounds` returns one assignment.
    """
    for owned, target in cases(rng):
        found = list(answer.rounds(copy.deepcopy(owned), copy.deepcopy(target)))
        case = f"rounds({owned}, {target})"
        wanted = {name: sorted(numbers) for name, numbers in target.items()}
        is_moving = any(
            number in numbers and number not in owned.get(name, [])
            for name, numbers in target.items() for other, theirs in owned.items() if other in target
            for number in theirs
        )  # fmt: skip
        expected = 0 if owned == target else 1 + is_moving
        assert len(found) == expected, f"{case} returns a list of length {len(found)} (right: {expected}): {found}"
        assert not found or found[-1] == wanted, f"{case}: the last round is {found[-1]} (right: {wanted})"


def test_the_arguments(answer, rng):
    """`next_round` and `rounds` do not change their arguments."""
    for owned, target in cases(rng):
        for name in ("next_round", "rounds"):
            given = copy.deepcopy((owned, target))
            getattr(answer, name)(*given)
            assert given == (owned, target), f"{name}({owned}, {target}) changes its arguments to {given}"
