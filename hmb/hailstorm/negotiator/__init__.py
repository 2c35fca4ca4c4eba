"""The negotiator: takes snapshots while data flows, and recovers the topology when a processor is lost.

The negotiator moves the master state through the table `steps.STEPS`. The documentation draws its picture of the state
machine from this table. A round without failures is the same as in the paper. Data flows for a grace period. The spouts
pause, and their positions are the next clock. Data flows again. When every bolt has saved its state at this clock, the
snapshot is complete.

The paper's round has a hole, and one additional step closes it. In the paper the spouts resume as soon as the clock is
chosen, while the bolts learn of the clock from a watch of their own. A tuple above the clock can therefore reach a bolt
that has not split its state yet. The bolt merges this tuple into its only state, and so into the snapshot, and the
replay counts the tuple a second time. In this implementation the spouts stay paused in SpoutsPaused(clock) until every
processor has reported that it has split its state at this clock.

**Recovery.** When an entry of a processor disappears, the negotiator begins a new epoch. All processors start again
with it, and register with the clocks of their snapshots. After a crash in the middle of a snapshot, the processors have
snapshots at different clocks. The negotiator chooses the newest clock at which every processor has a snapshot:

    tags (positions)    count-0         count-1        common to count-0 and count-1
                        C1, C2          C1             C1: everything above C1 is replayed

The chosen clock is the newest *complete* one, or a newer one: all processors had saved their states, and the negotiator
crashed before it could record the clock as complete. Older clocks are never chosen, so a sink may write the outputs up
to a complete clock. If a snapshot of the newest complete clock is missing, the topology ends with an error.

**Failures.** A processor that reports a failure (an exception of the user's code, expired records) ends the topology,
because a restart would fail at the same record.

**State.** The negotiator keeps no state between runs (paper): the epoch and the newest complete clock are in the
snapshot store, everything else is in the registry. A second negotiator waits until it gets the registry's `master`
node. A negotiator that lost its session cannot write to this node any more.

Read in this order:

- `steps`         the table: from which phase to which, when, and with which action
- `conditions`    when each event of the table has occurred, decided from the contents of the registry
- `machine`       `Negotiator`, which the table drives, and its actions

Source: Hailstorm, chapter 3.6, "Negotiator", and figure 4.
"""

from hmb.hailstorm.negotiator.conditions import NegotiatorSettings, RegistryView
from hmb.hailstorm.negotiator.machine import EpochStore, Negotiator
from hmb.hailstorm.negotiator.steps import STEPS, NegotiatorEvent, Step

__all__ = ["STEPS", "EpochStore", "Negotiator", "NegotiatorEvent", "NegotiatorSettings", "RegistryView", "Step"]
