"""The negotiator: takes snapshots while data flows, and recovers the topology when a processor is lost.

It moves the master state through the table `steps.STEPS`; the documentation's picture of the state machine is drawn
from this table. The plain round is the paper's. Data flows for a grace period. The spouts pause, and their positions
are the next clock. Data flows again. When every bolt has saved its state at this clock, the snapshot is complete.

The paper's round has a hole, and one additional step closes it. In the paper the spouts resume as soon as the clock is
chosen, while the bolts learn of the clock from a watch of their own. A tuple above the clock can therefore reach a bolt
that has not split its state yet. It is merged into the only state, and so into the snapshot, and the replay counts it a
second time. Here the spouts stay paused in SpoutsPaused(clock) until every processor has reported that it has split its
state at this clock.

**Recovery.** When an entry of a processor disappears, the negotiator begins a new epoch. All processors start again
with it, and register with the clocks of their snapshots. A crash in the middle of a snapshot leaves them with different
ones. The negotiator chooses the newest clock that all of them have:

    tags (positions)    count-0         count-1        count-0, count-1 have in common
                        C1, C2          C1             C1: everything above C1 is replayed

This is the newest *complete* snapshot or a newer one that was completed without anybody noticing. Older clocks are
never chosen, so a sink may write the outputs up to a complete clock. If a snapshot of the newest complete clock is
missing, the topology ends with an error.

**Failures.** A processor that reports a failure (an exception of the user's code, expired records) ends the topology,
because a restart would fail at the same record.

**State.** The negotiator keeps no state between runs (paper): the epoch and the newest complete clock are in the
snapshot store, everything else is in the registry. A second negotiator waits until it gets the registry's `master`
node. A negotiator that lost its session cannot write to this node any more.

Read in this order:

- `steps`         the table: from which phase to which, when, and with which action
- `conditions`    when each event of the table has occurred, by what the registry shows
- `machine`       `Negotiator`, which the table drives, and its actions

Source: Hailstorm, chapter 3.6, "Negotiator", and figure 4.
"""

from hmb.hailstorm.negotiator.conditions import NegotiatorSettings, RegistryView
from hmb.hailstorm.negotiator.machine import EpochStore, Negotiator
from hmb.hailstorm.negotiator.steps import STEPS, NegotiatorEvent, Step

__all__ = ["STEPS", "EpochStore", "Negotiator", "NegotiatorEvent", "NegotiatorSettings", "RegistryView", "Step"]
