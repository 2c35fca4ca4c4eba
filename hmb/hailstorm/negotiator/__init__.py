"""The negotiator: takes snapshots while data flows, and recovers the topology when a processor is lost.

The negotiator changes the master state according to the table `steps.STEPS`. The documentation draws its picture of the
state machine from the same table. A round takes one snapshot. If nothing fails, a round has the same parts as in the
Hailstorm paper. First, data flows for a grace period. Then the spouts pause, and their positions become the clock of
the snapshot. Then data flows again. When every processor has saved its state at this clock, the snapshot is complete.

The Hailstorm paper has an error in the work for a snapshot, which HMB corrects with one more phase. The negotiator
chooses the clock C of the snapshot, which contains one offset for each partition. The snapshot must contain only tuples
below C, which come from records below these offsets. A bolt that receives C therefore splits its state in two: one
state for the tuples below C, and one for the tuples above C. In the paper, the spouts resume as soon as the negotiator
has chosen C. A tuple above C can then reach a bolt that has not received C yet. The bolt merges this tuple into the
state for the snapshot. After a crash, the spouts send this tuple again, and the bolt counts it twice.

In HMB, the spouts stay paused until every processor that saves snapshots has split its state at the clock of the
snapshot. Each of these processors reports to the negotiator that it has split its state. During this time, the topology
is in the phase SpoutsPaused(clock), which the Hailstorm paper does not have.

**Recovery.** When the registry entry of a processor disappears, the negotiator begins a new epoch. All processors
restart in this epoch, and report the clocks of their snapshots. If the crash happened during a snapshot, the processors
have snapshots at different clocks. The negotiator chooses the newest clock at which every processor has a snapshot. In
this example it chooses C1, and the spouts send all records above C1 again:
    count-0         count-1        common to count-0 and count-1
    C1, C2          C1             C1

A clock contains one offset for each partition, and each snapshot has a clock. When all processors have saved their
snapshots at the same clock, the negotiator records in the snapshot store that this clock is *complete*. After a crash,
the topology usually restarts at the newest complete clock. It restarts at a newer clock in one case: all processors
have saved their snapshots at the newer clock, but the negotiator crashed before it recorded this clock as complete.

The topology never restarts at a clock below the newest *complete* clock. (A clock contains one offset for each
partition. It is complete if all processors have saved their snapshots at this clock, and the snapshot store has
recorded this.) A sink may therefore write its outputs up to the newest complete clock to its target, because no restart
makes these outputs again. If a lost snapshot allows only a restart at an older clock, the negotiator ends the topology
with an error.

**Failures.** If a processor reports a failure (an exception of the user's code, or records that have expired), the
negotiator ends the topology. A restart would not help, because the topology would fail again at the same record.

**State.** The negotiator stores no values of its own, as in the paper. The snapshot store contains the number of the
newest epoch (start of the topology) and the clock of the newest complete snapshot. The registry contains all other
values. Another negotiator can therefore continue the work if the first one crashes.

Only one negotiator of a topology works at a time: the negotiator that has created the node `master` in the registry. A
second negotiator waits until this node disappears, and then creates the node again. The node disappears when the
session of its negotiator with the registry ends. After that, the first negotiator cannot write to the node any more.

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
