"""Commutative monoids: the states of bolts, and the reason why Hailstorm allows no other states.

A commutative monoid is a set of states with an empty state and an operation `merge`. Three laws hold for all states a,
b and c:
    merge(empty, a) == a                              identity
    merge(merge(a, b), c) == merge(a, merge(b, c))    associativity
    merge(a, b) == merge(b, a)                        commutativity

Three examples of commutative monoids are whole numbers with 0 and +, sets with the empty set and union, and maps whose
values belong to a commutative monoid. With such states, exactly-once results are cheap, because a bolt may process its
tuples in any order. The state of a bolt is the merge of one small state for each tuple. By the laws, the order and the
grouping of these merges do not matter.

A snapshot belongs to a clock C, which contains an offset for each partition. A tuple is below C if the offset of its
record is below the offset of C, and above C otherwise. While the topology takes the snapshot, a bolt receives tuples
below C and tuples above C interleaved. The bolt merges the tuples below C into a state A. The tuples above C wait.

When the state A is complete, the bolt saves A as its snapshot at clock C. During the save, the bolt merges the waiting
tuples and all later tuples into a second state B. The bolt then continues with merge(A, B), as if it had never split
its state.

After a crash, the bolt loads the state A of the snapshot, and receives the tuples above the snapshot's clock again. The
order of these tuples may differ from the first time, but the bolt arrives at the same state.

Two kinds of states look like commutative monoids, but are not:
- Floats under addition. This addition is not associative: (0.1 + 0.2) + 0.3 differs from 0.1 + (0.2 + 0.3). `Mean` and
  `FloatSum` therefore add floats exactly.
- A map of sums that keeps only its n largest entries. Such a map forgets partial sums. `TopN` therefore keeps the
  largest value of each key and adds nothing. Its result is correct only if the value of a key never becomes smaller,
  and `TopN` does not check this.

The function `hailstorm.check` tests the laws on a user's own states.

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
