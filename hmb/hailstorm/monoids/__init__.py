"""Commutative monoids: the states of bolts, and why Hailstorm restricts itself to them.

A commutative monoid is a set of states with an empty state and an operation `merge`. Three laws hold for all states a,
b and c:

    merge(empty, a) == a                              identity
    merge(merge(a, b), c) == merge(a, merge(b, c))    associativity
    merge(a, b) == merge(b, a)                        commutativity

Whole numbers with 0 and +, sets with the empty set and union, and maps whose values are such states are examples. The
laws are what makes exactly-once results cheap. A state is the merge of one small state for each tuple, and the order
and the grouping of these merges do not matter. While a snapshot at clock C is taken, tuples at or below C and tuples
above C arrive interleaved. A bolt can merge the first kind into a state A and the second kind into a state B. The bolt
saves A as the snapshot at C, and then continues with merge(A, B), as if the state had never been split. After a crash,
a replay that starts from A in another order arrives at the same state.

Two kinds of states look like commutative monoids and are not. Adding floats is not associative: (0.1 + 0.2) + 0.3
differs from 0.1 + (0.2 + 0.3), so `Mean` and `FloatSum` add exactly. A map of sums that is trimmed to its n largest
entries forgets partial sums, so `TopN` keeps only values that grow. `hailstorm.check` tests the laws on a user's own
states.

Read in this order:

- `base`         `Monoid`: the operations, and the faster ones (`absorb`, `view`) that a bolt calls for each tuple
- `numbers`      `Sum`, `FloatSum`, `Min`, `Max`, `Mean`
- `containers`   `SetOf`, `MapOf`, `Newest`: states made of states
- `top_n`        `TopN`, and the reason why trimming a map of sums breaks associativity
- `sketches`     `HyperLogLog`, `CountMin`, `Quantiles`: estimates in bounded memory, each of them a map of monoids
- `windows`      `Tumbling`, `Sliding`, `Sessions`: maps from windows of event time to states

Source: Hailstorm, chapter 3.4, "Bolts".
"""

from hmb.hailstorm.monoids.base import FunctionMonoid, Monoid
from hmb.hailstorm.monoids.containers import MapOf, Newest, SetOf
from hmb.hailstorm.monoids.numbers import FloatSum, Max, Mean, Min, Sum
from hmb.hailstorm.monoids.sketches import CountMin, HyperLogLog, Quantiles
from hmb.hailstorm.monoids.top_n import TopN
from hmb.hailstorm.monoids.windows import Sessions, Sliding, Tumbling

__all__ = [
    "CountMin",
    "FloatSum",
    "FunctionMonoid",
    "HyperLogLog",
    "MapOf",
    "Max",
    "Mean",
    "Min",
    "Monoid",
    "Newest",
    "Quantiles",
    "Sessions",
    "SetOf",
    "Sliding",
    "Sum",
    "TopN",
    "Tumbling",
]
