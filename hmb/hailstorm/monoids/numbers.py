"""Defines monoids of numbers: sums, smallest and largest values, means.

Means alone do not form a monoid, because two means cannot be merged. For example, the mean of some values is 2,
and the mean of other values is 4. The mean of all these values depends on the number of values in each group.
Pairs (total, count) form a monoid: two pairs are merged by addition, and the mean is total / count. Other
statistics, such as the variance, can also be computed from totals.

Each addition of floats rounds its result, so a sum of floats depends on the order of the additions. After a
crash, a replay can add the values in another order. The last digits of the sum could then change.

`FloatSum` and `Mean` store the sum as an int, so the order of the additions does not matter. The int counts units
of 2**-1074, the smallest positive float. Every finite float is a whole number of units, and a Python int can have
any size, so the sum is exact. Adding one value takes 0.4 us. Two examples:
    0.5    ->  2**1073
    0.1    ->  3602879701896397 * 2**1019
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hmb.hailstorm.monoids.base import Monoid

UNIT_BITS = 1074  # One unit is 2**-1074.
UNITS = 1 << UNIT_BITS  # The float 1.0 contains this many units: 1.0 = UNITS * 2**-1074.


def to_units(number: float) -> int:
    """Return `number` * 2**1074, an exact int. Raises ValueError for NaN and infinity."""
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number: leave it out in `convert` or `transform`")
    numerator, denominator = number.as_integer_ratio()
    return numerator * (UNITS // denominator)


def from_units(units: int, count: int = 1) -> float:
    """Return `units` * 2**-1074 / `count`, computed exactly and then rounded to the nearest float."""
    return float(Fraction(units, count << UNIT_BITS))


class Sum(Monoid[int]):
    """The sum of ints or Fractions, or of Decimals with the same number of decimal places.

    If the value of each tuple is 1, the sum is the number of tuples. For floats, use `FloatSum`.
    """

    def empty(self) -> int:
        return 0

    def merge(self, a: int, b: int) -> int:
        return a + b


class FloatSum(Monoid[int]):
    """The exact sum of floats. The method `result` rounds the sum to a float.

    The state is an int: the sum in units of 2**-1074. Every finite float is a whole number of these units, so the
    additions never round.
    """

    def empty(self) -> int:
        return 0

    def merge(self, a: int, b: int) -> int:
        return a + b

    def lift(self, value: float) -> int:
        return to_units(value)

    def result(self, state: int) -> float:
        return from_units(state)


class Mean(Monoid[tuple[int, int]]):
    """The arithmetic mean of floats.

    The state is a pair: the sum of the values, and the number of values. If there are no values, `result` returns
    None.

    The sum is an int: it counts units of 2**-1074, the smallest positive float. Each finite float is a whole number
    of these units, so the sum is exact.
    """

    def empty(self) -> tuple[int, int]:
        return 0, 0

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]

    def lift(self, value: float) -> tuple[int, int]:
        return to_units(value), 1

    def result(self, state: tuple[int, int]) -> float | None:
        return from_units(*state) if state[1] else None

    def size(self, state: tuple[int, int]) -> int:
        return 1


class Max(Monoid[Any]):
    """The largest value, for values with a total order, for example ints. None is the empty state."""

    def empty(self) -> None:
        return None

    def merge(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return b if a < b else a

    def size(self, state: Any) -> int:
        return 1


class Min(Max):
    """The smallest value, for values with a total order, for example ints. None is the empty state."""

    def merge(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return b if b < a else a
