"""`HyperLogLog`, `CountMin` and `Quantiles`: sketches, which estimate results with states of bounded size.

The state of each sketch is a dict of numbers. To merge two states, the sketch computes the sum or the maximum
of the two numbers for each key:
    sketch         question                                monoid
    HyperLogLog    how many different values occurred?     MapOf(Max())
    CountMin       how often did a value occur?            MapOf(Sum())
    Quantiles      which number is the median?             MapOf(Sum())

After a crash, a topology restores a snapshot, and processes the tuples after the snapshot again, perhaps in
another order. The estimates of `HyperLogLog`, `CountMin` and `Quantiles` stay exactly the same, because the
order does not change the states.

Some sketches of other libraries drop values at random, for example KLL (library `datasketches`). After a crash,
KLL can drop other values than before, so the estimates can change.

`HyperLogLog` and `CountMin` need a hash that is the same in every process, but Python's `hash` of a string differs from
process to process. Both sketches therefore encode a value, and compute the BLAKE2b hash of its bytes.

Sources: Flajolet et al., "HyperLogLog" (2007). Ertl, "New cardinality estimation algorithms for HyperLogLog
sketches" (2017), contains the algorithm of `HyperLogLog.result`. Cormode and Muthukrishnan, "An improved data
stream summary: the count-min sketch" (2005). Masson et al., "DDSketch" (2019).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from hmb.hailstorm.codec import encode
from hmb.hailstorm.monoids.containers import MapOf
from hmb.hailstorm.monoids.numbers import Max, Sum

HASH_BITS = 64


def stable_hash(value: Any, salt: int = 0) -> int:
    """Return a 64-bit hash of a value. Every process computes the same hash for this value."""
    digest = blake2b(encode(value), digest_size=HASH_BITS // 8, salt=salt.to_bytes(2, "big")).digest()
    return int.from_bytes(digest, "big")


class HyperLogLog(MapOf):
    """Estimates how many different values have occurred.

    The sketch computes a 64-bit hash of each value. The first `precision` bits of a hash select a *register*.
    The *rank* of a hash is the position of the first 1 in the other bits. For example, the rank is 3 if the
    other bits begin with 001.

    A state maps each register to its highest rank. On average, only one in 1,024 hashes has the rank 10. If a
    register's highest rank is 10, the register has probably received hundreds of different hashes. A repeated
    value has the same hash, so it does not change the state.

    The standard error is 1.04 / sqrt(2**precision): 1.6 % for the default precision.
    """

    def __init__(self, precision: int = 12) -> None:
        if not 4 <= precision <= 18:
            raise ValueError(f"the precision must be from 4 to 18, not {precision}")
        super().__init__(Max())
        self.precision = precision

    def lift(self, value: Any) -> dict[int, int]:
        rest_bits = HASH_BITS - self.precision
        hashed = stable_hash(value)
        rest = hashed & ((1 << rest_bits) - 1)
        return {hashed >> rest_bits: rest_bits - rest.bit_length() + 1}

    def result(self, state: Mapping[int, int]) -> Any:
        """Return the estimated number of different values, a float. The computation is algorithm 6 of Ertl's paper."""
        registers, ranks = 1 << self.precision, HASH_BITS - self.precision
        counts = [0] * (ranks + 2)
        counts[0] = registers - len(state)
        for rank in state.values():
            counts[rank] += 1
        total = registers * _tau(1 - counts[ranks + 1] / registers)
        for rank in range(ranks, 0, -1):
            total = 0.5 * (total + counts[rank])
        total += registers * _sigma(counts[0] / registers)
        return registers * registers / (2 * math.log(2)) / total

    def describe(self) -> str:
        return f"{type(self).__name__}({self.precision})"


def _sigma(x: float) -> float:
    """Return the infinite sum x + x**2 + 2 * x**4 + 4 * x**8 + ...

    HyperLogLog distributes values over *registers*. The share of empty registers is `x`, from 0 to 1. If `x` is
    above 0, HyperLogLog corrects its estimate with the sum.
    """
    if x == 1:
        return math.inf
    total, power, before = x, 1.0, 0.0
    while total != before:
        x, before = x * x, total
        total += x * power
        power *= 2
    return total


def _tau(x: float) -> float:
    """Return a number that corrects the estimate of HyperLogLog if some registers are full.

    A state maps registers to ranks. A full register has the highest possible rank. `x` is the number of registers
    that are not full, divided by the number of all registers.
    """
    if x in (0, 1):
        return 0.0
    total, power, before = 1 - x, 1.0, -1.0
    while total != before:
        x, before = math.sqrt(x), total
        power *= 0.5
        total -= (1 - x) ** 2 * power
    return total / 3


class CountMin(MapOf):
    """Estimates how often each value has occurred. An estimate is never too low, but it can be too high.

    A state is a table of counts with `depth` rows and `width` cells in each row. In each row, a hash of a value
    selects one cell. Each occurrence of the value adds 1 to these cells.

    If several values share a cell, its count is too high. The estimate for a value is the smallest count in the
    value's cells.

    After N values, the error of an estimate is usually at most N * e / width, where e is 2.718. The probability of
    a larger error is at most e**-depth.
    """

    def __init__(self, width: int = 2048, depth: int = 5) -> None:
        if width < 1 or depth < 1:
            raise ValueError(f"the width and the depth must be at least 1, not {width} and {depth}")
        super().__init__(Sum())
        self.width, self.depth = width, depth

    def lift(self, value: Any) -> dict[int, int]:
        return dict.fromkeys(self._cells(value), 1)

    def estimate(self, state: Mapping[int, int], value: Any) -> int:
        return min(state.get(cell, 0) for cell in self._cells(value))

    def describe(self) -> str:
        return f"{type(self).__name__}({self.width}, {self.depth})"

    def _cells(self, value: Any) -> list[int]:
        return [row * self.width + stable_hash(value, row) % self.width for row in range(self.depth)]


class Quantiles(MapOf):
    """Estimates the quantiles of numbers, for example the median.

    The sketch does not store the numbers. It counts the numbers in each of many intervals, called *buckets*. Let
    `error` be the allowed relative error, and let g be (1 + error) / (1 - error). Bucket i of the positive numbers
    contains the numbers above g**(i-1) and up to g**i.

    For each number x in bucket i, the sketch uses the value 2 * g**i / (g + 1). The relative error of this value is
    at most `error`. For example, if `error` is 0.5, g is 3. The value for the numbers above 3 and up to 9 is 4.5.

    A state maps the key of each bucket to a count. The key is (1, i) for positive numbers, (-1, i) for negative
    numbers, and (0, 0) for 0.
    """

    def __init__(self, error: float = 0.01) -> None:
        if not 0 < error < 1:
            raise ValueError(f"the relative error must be between 0 and 1, not {error}")
        super().__init__(Sum())
        self.error = error
        self.base = (1 + error) / (1 - error)
        self._log = math.log(self.base)

    def lift(self, value: Any) -> dict[tuple[int, int], int]:
        """Return the state for a single number: it maps the bucket of `value` to the count 1.

        A bucket is an interval of numbers. Raises ValueError if `value` is NaN or infinity.
        """
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number: leave it out in `convert` or `transform`")
        if value == 0:
            return {(0, 0): 1}
        return {(1 if value > 0 else -1, math.ceil(math.log(abs(value)) / self._log)): 1}

    def quantile(self, state: Mapping[tuple[int, int], int], q: float) -> float | None:
        """Return an estimate of the `q` quantile of the numbers, or None if the state is empty.

        The argument `q` is from 0 to 1. For `q` = 0.99, about 99 % of the numbers are at or below the result.
        """
        left = q * (sum(state.values()) - 1)
        for sign, exponent in sorted(state, key=lambda key: (key[0], key[0] * key[1])):
            left -= state[sign, exponent]
            if left < 0:
                return sign * 2 * self.base**exponent / (self.base + 1) if sign else 0.0
        return None

    def describe(self) -> str:
        return f"{type(self).__name__}({self.error})"
