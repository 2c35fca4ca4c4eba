"""`TopN` keeps the n keys with the largest values. Of two values of the same key, it keeps the larger one.

A state of `TopN` is a map from keys to values. After each merge, `TopN` keeps only the n entries with the
largest values, so a state never has more than n entries. If two states contain the same key, `TopN` must not
add the two values: a merge that adds values and then drops entries is not associative. The following example
shows this for n = 1. The states a, b and c count words:
    a = {sun: 5}    b = {fog: 4}    c = {fog: 4}
    merge(merge(a, b), c):   {sun: 5, fog: 4} -> trimmed {sun: 5};   then {sun: 5, fog: 4} -> {sun: 5}
    merge(a, merge(b, c)):   {fog: 8};                               then {sun: 5, fog: 8} -> {fog: 8}
The two lines have different results. On the first line, merge(a, b) drops `fog` and its count of 4, so the
second merge cannot add this 4.

When two merged states contain the same key, `TopN` keeps the *maximum* of the two values. A dropped key can only
return with a value larger than its dropped value. This larger value is then the maximum, so `TopN` can forget the
dropped value. For example, `TopN(1)` keeps {sun: 5} and drops {fog: 4}. Later, {fog: 6} replaces {sun: 5}.

`TopN` is for a bolt that receives growing values. In the Hailstorm paper, for example, the topn bolts receive growing
counts from the count bolts. A count bolt sends (fog, 4) and later (fog, 8), and `TopN` replaces 4 by 8.

The value of a key can become smaller in some streams, for example if the value is the mean of several numbers. `TopN`
then returns wrong results, because it keeps the largest value that a key ever had. Use the monoid `MapOf(Newest())`
instead, which keeps the newest value of every key. The bolt's function `transform` can then select the n largest values
of this map.

If several keys have the same value, `TopN` orders these keys by their encoding. The choice among these keys therefore
does not depend on the order of merges.

Source: the Hailstorm paper, chapter 4, "Example Topology". There, each bolt `topn` keeps only n entries.
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
        """Return a map with one entry. The argument `value` is a (key, value) pair, which becomes this entry."""
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
