"""Commutative monoids: states that can be merged in any order. A bolt (a step of a topology) has such a state.

A commutative monoid is a set of states with an empty state and an operation `merge`. Three laws hold for all states a,
b and c:
    merge(empty, a) == a                              identity
    merge(merge(a, b), c) == merge(a, merge(b, c))    associativity
    merge(a, b) == merge(b, a)                        commutativity

Three examples of commutative monoids are whole numbers with 0 and +, sets with the empty set and union, and maps whose
values belong to a commutative monoid. The state of a bolt (a step of a topology) belongs to a commutative monoid. It is
the merge of many small states, one for each tuple that the bolt has processed. In a commutative monoid, neither the
order nor the grouping of merges changes the result. A bolt may therefore process its tuples in any order. If it
processes some tuples again after a crash, their order may differ from the first time.

A snapshot belongs to a clock C, which contains an offset for each partition. A tuple is below C if the offset of its
record is below the offset of C, and above C otherwise. While the topology takes the snapshot, a bolt receives tuples
below C and tuples above C interleaved. The bolt merges the tuples below C into a state A. The tuples above C wait.

When the state A is complete, the bolt saves A as its snapshot at clock C. During the save, the bolt merges the waiting
tuples and all later tuples into a second state B. The bolt then continues with merge(A, B), as if it had never split
its state.

After a crash, each bolt loads its state from a snapshot. The snapshot has a clock, which contains one offset for each
partition, and the loaded state covers the tuples from records below these offsets. The bolt then receives all other
tuples, also those that it had already received before the crash. They may arrive in another order than before, but the
order of merges does not matter. The bolt therefore reaches the same state as in a run without a crash.

Two kinds of states look like commutative monoids, but are not:
- Floats under addition. This addition is not associative: (0.1 + 0.2) + 0.3 differs from 0.1 + (0.2 + 0.3). `Mean` and
  `FloatSum` therefore add floats exactly.
- A map of sums that keeps only its n largest entries. Such a map forgets partial sums. `TopN` therefore keeps the
  largest value of each key and adds nothing. Its result is correct only if the value of a key never becomes smaller,
  and `TopN` does not check this.

Users can define monoids of their own. The function `hailstorm.check` tests such a monoid: it searches for states that
break one of the three laws (identity, associativity, commutativity).

Read in this order:
- `base`         `Monoid`: the operations, and faster operations (`absorb`, `view`) that a bolt calls for each tuple
- `numbers`      `Sum`, `FloatSum`, `Min`, `Max`, `Mean`
- `containers`   `SetOf`, `MapOf`, `Newest`: sets, maps of states, and the value with the highest version
- `top_n`        `TopN`, the n largest values, and the reason why it merges values by maximum and not by sum
- `sketches`     `HyperLogLog`, `CountMin`, `Quantiles`: estimates in bounded memory; the state of each is a map
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
