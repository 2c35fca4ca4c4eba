"""Tests for the second exercise of lab 14.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""

from functools import reduce


def test_greatest(answer, rng):
    """`greatest(count)` returns `(empty, merge)`: an empty tuple, and a function that merges two tuples into one.

    The merged tuple has at most `count` numbers: the greatest numbers of the two tuples, in descending order. A
    number that occurs twice counts twice: for `greatest(2)`, `merge((7, 5), (7,))` returns `(7, 7)`.
    """
    for count in (1, 2, 3):
        empty, merge = answer.greatest(count)
        assert empty == (), f"greatest({count}): the empty state is {empty!r} (right: ())"
        cases = [((), ()), ((5,), ()), ((5,), (7,)), ((5,), (5,))]
        for _ in range(60):
            pair = [tuple(sorted(rng.choices(range(9), k=rng.randrange(count + 1)), reverse=True)) for _ in range(2)]
            cases.append(tuple(pair))
        for a, b in cases:
            expected, found = tuple(sorted(a + b, reverse=True)[:count]), merge(a, b)
            assert found == expected, f"greatest({count}): merge({a}, {b}) is {found!r} (right: {expected})"


MONOIDS = {
    "max": (-1, max, lambda rng: rng.randrange(100)),
    "sum": (0, lambda a, b: a + b, lambda rng: rng.randrange(100)),
    "join texts": ("", lambda a, b: a + b, lambda rng: rng.choice("abcdefgh")),
    "union of sets": (frozenset(), lambda a, b: a | b, lambda rng: frozenset([rng.randrange(6)])),
}


def compare(answer, name, values, size):
    """Push each value. Check that `result` then merges the last `size` values with the operation `name`."""
    empty, merge, _ = MONOIDS[name]
    window = answer.SlidingWindow(empty, merge, size)
    for number, value in enumerate(values):
        window.push(value)
        last = values[max(0, number + 1 - size) : number + 1]
        expected, found = reduce(merge, last, empty), window.result()
        case = f"{name}, window of {size}, after push of {values[: number + 1]}"
        assert found == expected, f"{case}: result() is {found!r} (right: {expected!r})"


def test_an_empty_window(answer):
    """`result` returns the argument `empty` before the first push, and the newest value if `size` is 1."""
    for name, (empty, merge, _) in MONOIDS.items():
        found = answer.SlidingWindow(empty, merge, 3).result()
        assert found == empty, f"{name}, a window without values: result() is {found!r} (right: {empty!r})"
    compare(answer, "max", [5, 3, 9, 1], 1)


def test_windows(answer, rng):
    """`result` merges only the last `size` values, and ignores all older values.

    Suppose that `size` is 3, and that `merge` is Python's function `max`. After the values 9, 1, 2 and 3, `result`
    returns 3.
    """
    compare(answer, "sum", [1, 2, 3], 5)
    compare(answer, "max", [9, 1, 2, 3, 0, 1], 3)
    for name, (_, _, value) in MONOIDS.items():
        for number in range(30):
            compare(answer, name, [value(rng) for _ in range(3 + number)], rng.randrange(1, 9))


def test_order(answer, rng):
    """`result` merges the values from the oldest to the newest, because `merge(a, b)` can differ from `merge(b, a)`."""
    compare(answer, "join texts", list("abcde"), 3)
    for size in range(1, 12):
        compare(answer, "join texts", [rng.choice("abcdefgh") for _ in range(40)], size)


def test_results_between(answer, rng):
    """`result` can be called at any time, and several times. It does not change the window."""
    for _ in range(60):
        size, values, steps = rng.randrange(1, 7), [], []
        window = answer.SlidingWindow("", lambda a, b: a + b, size)
        for _ in range(30):
            if rng.random() < 0.5:
                values.append(rng.choice("abc"))
                window.push(values[-1])
                steps.append(f"push({values[-1]!r})")
            else:
                found, expected = window.result(), "".join(values[-size:])
                steps.append("result()")
                case = f"join texts, window of {size}, {', '.join(steps)}"
                assert found == expected, f"{case} returns {found!r} (right: {expected!r})"


def test_few_merges(answer):
    """On average, `push` and `result` together call `merge` at most three times for each new value.

    The test pushes 5,000 values into a window of 1,000 values, and calls `result` after each value.
    """
    calls = 0

    def merge(a, b):
        nonlocal calls
        calls += 1
        return max(a, b)

    window = answer.SlidingWindow(-1, merge, 1000)
    for number in range(5000):
        window.push(number * 7919 % 5000)
        window.result()
        case = f"window of 1,000: after {number + 1:,} calls of push and of result, merge was called {calls:,} times"
        assert calls <= 3 * (number + 1) + 1000, f"{case}; do not merge all values again for each result"
