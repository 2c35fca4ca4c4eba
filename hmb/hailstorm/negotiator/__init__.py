"""The negotiator: takes snapshots while data flows, and recovers the topology when a processor is lost.

The negotiator changes the master state according to the table `steps.STEPS`. The documentation draws its picture of the
state machine from the same table. A round takes one snapshot. If nothing fails, a round has the same parts as in the
Hailstorm paper. First, data flows for a grace period. Then the spouts pause, and their positions become the clock of
the snapshot. Then data flows again. When every processor has saved its state at this clock, the snapshot is complete.

The work for one snapshot is a *round*. The round of the Hailstorm paper has an error, which HMB corrects with one more
step. In the paper, the spouts resume as soon as the negotiator has chosen the clock, but a bolt may learn of the clock
later. A tuple above the clock can therefore reach a bolt that has not split its state yet. The bolt merges this tuple
into the state that it saves as its snapshot. After a crash, the replay counts the tuple a second time. In this
implementation, the spouts stay paused in the phase SpoutsPaused(clock) until every processor that saves snapshots has
reported that it has split its state at this clock.

**Recovery.** When the registry entry of a processor disappears, the negotiator begins a new epoch. All processors
restart in this epoch, and report the clocks of their snapshots. If the crash happened during a snapshot, the processors
have snapshots at different clocks. The negotiator chooses the newest clock at which every processor has a snapshot. In
this example it chooses C1, and the spouts send all records above C1 again:
    count-0         count-1        common to count-0 and count-1
    C1, C2          C1             C1

The clock that the negotiator chooses is usually the newest *complete* clock. The chosen clock is newer in one case: all
processors had saved their states, but the negotiator crashed before it stored the clock as complete.

The negotiator never chooses a clock below the newest complete clock. So no replay repeats the outputs up to the newest
complete clock, and a sink may write these outputs to its target. If a processor has lost its snapshot at the newest
complete clock, the negotiator ends the topology with an error.

**Failures.** If a processor reports a failure (an exception of the user's code, or records that have expired), the
negotiator ends the topology. A restart would not help, because the topology would fail again at the same record.

**State.** The negotiator itself keeps no state between runs, as in the paper. The epoch and the newest complete clock
are in the snapshot store, and all other values are in the registry. A second negotiator waits until it can create the
registry's node `master`. A negotiator that lost its session cannot write to this node any more.

Read in this order:
- `steps`         the table: each row has a phase, an event, the next phase and an action
- `conditions`    for each event of the table, a function that decides whether the event has occurred
- `machine`       `Negotiator`, which takes the steps of the table, and the actions of these steps

Source: Hailstorm, chapter 3.6, "Negotiator", and figure 4.
"""

from hmb.hailstorm.negotiator.conditions import NegotiatorSettings, RegistryView
from hmb.hailstorm.negotiator.machine import EpochStore, Negotiator
from hmb.hailstorm.negotiator.steps import STEPS, NegotiatorEvent, Step

__all__ = ["STEPS", "EpochStore", "Negotiator", "NegotiatorEvent", "NegotiatorSettings", "RegistryView", "Step"]
