"""`TopN` keeps the n keys with the largest values. It merges two values of a key by maximum, and never adds them.

`TopN` trims a map to its n largest entries after each merge, so its size is bounded. If a merge added the values of a
key, a later sum would miss the values that an earlier merge has dropped. Such a merge is not associative. This example
has n = 1 and three states that count words:
    a = {sun: 5}    b = {fog: 4}    c = {fog: 4}
    merge(merge(a, b), c):   {sun: 5, fog: 4} -> trimmed {sun: 5};   then {sun: 5, fog: 4} -> {sun: 5}
    merge(a, merge(b, c)):   {fog: 8};                               then {sun: 5, fog: 8} -> {fog: 8}
On the first line, the inner merge drops `fog` with its count of 4, so the outer merge cannot add this 4.

A merge by *maximum* loses nothing when it drops a key. It drops a key only if n other keys have larger values, and
these values never shrink. The dropped key can return to the n largest keys only with a new, larger value. This new
value alone is then the maximum of the key, and the dropped value has no effect on it. `TopN` therefore merges values by
maximum.

`TopN` is for a bolt that receives growing values. In the Hailstorm paper, for example, the topn bolts receive growing
counts from the count bolts. A count bolt sends (fog, 4) and later (fog, 8), and `TopN` replaces 4 by 8.

If the values can shrink, for example means, use `MapOf(Newest())` instead of `TopN`. This map keeps all keys. Choose
the n largest entries in the bolt's function `transform`.

If several keys have the same value, `TopN` orders these keys by their encoding. The choice among these keys therefore
does not depend on the order of merges.

Source: Hailstorm, chapter 4, "Example Topology", where the queue of each topn bolt is trimmed to n entries.
"""

from __future__ import annotations

from typing import Any

from hmb.hailstorm.codec import encode
from hmb.hailstorm.monoids.base import Monoid


def rank(item: tuple[Any, Any]) -> tuple[Any, bytes]:
    """Return the sort key of a (key, value) pair: first the value, then the encoding of the key."""
    return item[1], encode(item[0])


class TopN(Monoid[dict[Any, Any]]):
    """The n keys with the largest values. If two merged states contain the same key, `merge` keeps the larger value.

    Invariant: a state has at most n entries.
    """

    def __init__(self, n: int) -> None:
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        self.n = n

    def empty(self) -> dict[Any, Any]:
        return {}

    def lift(self, value: Any) -> dict[Any, Any]:
        """Return a map that contains only this (key, value) pair."""
        return {value[0]: value[1]}

    def merge(self, a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
        return self.absorb(dict(a), b)

    def absorb(self, a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
        for key, value in b.items():
            if key not in a or a[key] < value:
                a[key] = value
        while len(a) > self.n:
            del a[min(a.items(), key=rank)[0]]
        return a

    def result(self, state: dict[Any, Any]) -> list[tuple[Any, Any]]:
        """Return the (key, value) pairs as a list, the largest value first."""
        return sorted(state.items(), key=rank, reverse=True)

    def describe(self) -> str:
        return f"{type(self).__name__}({self.n})"
