"""Commutative monoids: states that can be merged in any order. A bolt (a step of a topology) has such a state.

A commutative monoid is a set of states with an empty state and an operation `merge`. Three laws hold for all states a,
b and c:
    merge(empty, a) == a                              identity
    merge(merge(a, b), c) == merge(a, merge(b, c))    associativity
    merge(a, b) == merge(b, a)                        commutativity

Here are three examples of commutative monoids:
- whole numbers: `merge` is +, and the empty state is 0
- sets: `merge` is the union, and the empty state is the empty set
- maps whose values belong to a commutative monoid: `merge` merges the values of equal keys, and the empty state
  is the empty map

A bolt (a step of a topology) computes a small state from each tuple, and merges all these states. The result is
the state of the bolt. The order of the merges does not change the result, so a bolt can process its tuples in
any order. After a crash, the bolt processes some tuples again. Their order can then differ from the first time.

Each snapshot has a clock C, which contains an offset for each partition. A tuple comes from a record of one
partition. The tuple is *below C* if the offset of this record is smaller than the partition's offset in C.
Otherwise, the tuple is *above C*. While the topology takes a snapshot, a bolt receives tuples of both kinds, in
any order. The bolt merges the tuples below C into a state A. The tuples above C must wait.

When A contains all tuples below C, the bolt saves A in the background. A must not change during the save, so the
bolt merges other tuples into a second state B. After the save, the bolt continues with merge(A, B). The result is
the same as with only one state.

After a crash, each bolt loads its state from a snapshot. The bolt then receives all tuples that this state does
not contain. Some of these tuples also arrived before the crash, perhaps in a different order. The order of
merges does not matter, so the bolt reaches the same state as without the crash.

Two kinds of states look like commutative monoids, but are not:
- Sums of floats. Python rounds each sum, so (0.1 + 0.2) + 0.3 differs from 0.1 + (0.2 + 0.3). `Mean` and
  `FloatSum` add floats without rounding.
- A map with only the n largest sums. When it drops a key, it loses the key's sum so far. `TopN` therefore keeps
  the largest value of each key, not a sum. Use `TopN` only for values that never become smaller, for example
  counts.

Users can define monoids of their own. The function `hailstorm.check` tests such a monoid: it searches for states that
break one of the three laws (identity, associativity, commutativity).

Read the modules in this order:
- `base`         `Monoid`: the operations, and faster ones (`absorb`, `view`) that a bolt calls for each tuple
- `numbers`      `Sum`, `FloatSum`, `Min`, `Max`, `Mean`
- `containers`   `SetOf`, `MapOf`, `Newest`: sets, maps of states, and the value with the highest version
- `top_n`        `TopN`: the n keys with the largest values
- `sketches`     `HyperLogLog`, `CountMin`, `Quantiles`: estimates in bounded memory
- `windows`      `Tumbling`, `Sliding`, `Sessions`: a separate state for each window of event time

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
