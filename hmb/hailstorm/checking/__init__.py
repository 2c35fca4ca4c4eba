"""The function `check` searches a bolt or a topology for mistakes that cause wrong results.

Nothing in Python can prove that a `merge` is commutative. The function `check` searches for a counterexample
instead. It makes states from sample tuples, and uses them to test three laws: identity, associativity and
commutativity. If a law does not hold, `check` returns a text with the law and the states.

The function `check` has two forms:
    check(bolt, tuples)          checks the monoid laws, and that the bolt's functions are pure: a second call returns
                                 the same result, and no call changes an argument
    check(topology, records)     checks each bolt with the tuples that it receives; then checks the topology

The check of a topology finds the mistakes of its bolts, and also these mistakes:
- The topology does not run, or it fails in some order of events.
- A spout or a bolt gets no tuple, so the check cannot test it. For example, the topic of a spout is empty, or
  `convert` returns None for every record.
- A spout drops more than 25 % of its records as late: their event times are more than `allowed_lateness` before
  the newest event time of the partition. Perhaps `event_time` returns seconds instead of ms.
- Tuples with the same key can go to different instances of a bolt. Each instance then computes only a part of
  the result for this key.
- The result of a bolt depends on the order of events. To find this mistake, the check simulates the topology
  many times, with different orders of events and with crashes. It then compares the results.

For example, after each amount, bolt A sends the sum of all amounts so far. Bolt B adds these sums. If 5 arrives
before 1, A sends 5 and 6, and the result of B is 11. If 1 arrives before 5, the result of B is 1 + 6 = 7.

**Windows.** When a snapshot begins, a bolt *closes* each window whose time is over: it drops the window and its
content. Different runs begin their snapshots at different moments. So one correct run can still have a window
that another correct run has closed.

The content of each window must be the same in all runs of the check. When a bolt drops a window, the check
stores the content of the window. At the end of a run, the check also stores the contents of the windows that
are still open. It then compares the stored contents of all runs.

**Functions that remember.** A function must not remember earlier tuples, for example in a global dict. After a
crash, Hailstorm restores the states from a snapshot, but it cannot restore this dict. A replay then adds the same
tuples to the dict again.

To find functions that remember tuples, the check calls `convert`, `lift` and `transform` twice with the same
argument. It reports a problem if the two results differ. It cannot find a function that remembers tuples but
returns equal results.

**Late tuples.** A tuple is late at a bolt if the bolt has already closed every window that contains the tuple's
event time. Although spouts drop records with old event times, some tuples can still be late.

In a real run, a partition can have no records for a while. A bolt then closes windows without waiting for this
partition. The next tuples of the partition can therefore be late.

In the simulation, a bolt waits for all partitions before it closes a window. A tuple can be late only if the
bolt's function `time` returns an earlier time than the spout's function `event_time`. The check reports this
mistake of the bolt.

If `check` returns an empty list, it has found no problem. With more samples, `check` can still find a problem.

Read in this order:
- `laws`          checks the laws of a monoid, and whether the functions of a bolt are pure
- `orders`        checks a topology
- `samples`       finds sample records that `convert` cannot convert (dead letters), and the range of the event times
- `messages`      shortens values for the messages of `check`
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking.laws import bolt_problems
from hmb.hailstorm.checking.orders import late_records, topology_problems
from hmb.hailstorm.checking.samples import dead_letters, event_times
from hmb.hailstorm.simulation import Partitions
from hmb.hailstorm.topology import Topology

__all__ = ["check", "dead_letters", "event_times", "late_records"]


def check(checked: Bolt | Topology, samples: Sequence[Any] | Mapping[str, Partitions], seed: int = 0) -> list[str]:
    """Check a bolt or a topology with sample data, and return the problems as a list of strings.

    For a bolt, `samples` is a list of tuples. For a topology, `samples` maps the name of each topic to a list of
    partitions, and each partition is a list of records: `{topic: [[record]]}`. `seed` starts the
    random generator.
    """
    if isinstance(checked, Topology):
        assert isinstance(samples, Mapping)
        return list(topology_problems(checked, samples, seed))
    assert not isinstance(samples, Mapping)
    return list(bolt_problems(checked, list(samples), random.Random(seed)))
