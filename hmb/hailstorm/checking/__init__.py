"""The function `check` searches for mistakes in a bolt or a topology that would make the results wrong.

Nothing in Python can prove that a `merge` is commutative. The function `check` searches for a counterexample instead.
The function makes states from sample tuples, and tests the monoid laws with these states. If a law does not hold,
`check` returns a text with the law and the states.

The function `check` has two forms:
    check(bolt, tuples)          checks the laws of the bolt's monoid, and the purity of its functions
    check(topology, records)     first checks each bolt like check(bolt, tuples), with the tuples that reach the bolt;
                                 then checks the topology

Besides the mistakes of single bolts, the check of a topology finds five more kinds of mistakes:
- The topology does not run, or it does not run in every order of events.
- A spout or a bolt gets no tuple. The topic of the spout may be empty, or `convert` may return None for every record.
  The check then reports a problem, because nothing was checked.
- A spout leaves out more than 25 % of its records, because they are late. Perhaps `event_time` returns seconds, not ms.
- The grouping of a bolt differs from the keys of its state, and the bolt has several instances. Two tuples of one key
  can then reach different instances, and each instance computes only a part of the result.
- The result depends on the order of events. The check runs the topology in the simulation, in many orders of events and
  with crashes. All runs must end with the same states. For example, bolt A sends its current count after each tuple,
  and bolt B adds these counts. The sum then depends on the order in which tuples of different partitions arrive at A.

**Windows.** Two correct runs can end with different open windows. A bolt drops a window when a snapshot begins after
the end of the window, and the moment of a snapshot differs from run to run. The *content* of a window must be the same
in all runs. For each run, the check therefore collects the content of every window: the content at the moment when the
bolt dropped the window, or the content at the end if the window is still open. The check compares these contents.

**Functions that remember.** A function must not remember earlier tuples, for example in a global dict. No snapshot
contains this memory, and a replay changes it a second time. The check calls each function twice with the same argument.
The check reports a `convert`, a `lift` or a `transform` whose second call returns another value. If the memory does not
change the result of the second call, the check cannot find this mistake.

**Late tuples.** A tuple is late at a bolt if the bolt has already closed the windows of the tuple. In a real run, a
partition can have no records for a while. A bolt then closes windows without waiting for this partition, so the next
tuples of this partition can be late. In the simulation, a bolt always waits for all partitions. A tuple can then be
late for only one reason: the bolt's function `time` returns an earlier time for the tuple than the function
`event_time` of the spout. The check reports such a bolt.

An empty list of problems means that `check` found no counterexample. With more samples, `check` may still find one.

Read in this order:
- `laws`          the laws of a monoid, and the purity of a bolt's functions
- `orders`        the check of a topology
- `samples`       the dead letters and the event times of the sample records
- `messages`      values as short texts
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
    """Return the problems that the check finds. One or two sentences describe each problem.

    For a bolt, `samples` are tuples. For a topology, `samples` are the records of each partition of each topic:
    `{topic: [[record]]}`.
    """
    if isinstance(checked, Topology):
        assert isinstance(samples, Mapping)
        return list(topology_problems(checked, samples, seed))
    assert not isinstance(samples, Mapping)
    return list(bolt_problems(checked, list(samples), random.Random(seed)))
