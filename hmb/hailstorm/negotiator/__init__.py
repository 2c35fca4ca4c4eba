"""The negotiator: takes snapshots while data flows, and recovers the topology when a processor is lost.

The negotiator works in rounds. If nothing fails, each round takes one snapshot:
1. Data flows during the grace period.
2. The spouts pause. The snapshot gets a *clock*, which contains the spouts' next offset in each partition.
3. The spouts resume. Each processor saves its state after exactly the records below these offsets.
4. When every processor has saved its state, the snapshot is complete.

The table `steps.STEPS` contains the steps of a round, and the steps after a failure. The documentation draws its
picture of the state machine from this table.

The Hailstorm paper has the same four steps, but an error in its snapshots, which HMB corrects with one more phase. A
snapshot must contain only the tuples below its clock C. When a bolt receives C, it splits its state in two: the tuples
below C, and the other tuples.

In the paper, the spouts pause, the negotiator chooses C, and the spouts immediately send tuples again. A tuple that is
not below C can then reach a bolt before the bolt receives C. The bolt adds the tuple to the state of the snapshot.
After a crash, the spouts send this tuple again, and the bolt counts it twice.

In HMB, the spouts stay paused until every processor that saves snapshots has received the clock C. Each of these
processors then keeps the tuples below C apart from all later tuples, and reports this to the negotiator. After all
reports, the spouts send tuples again. This additional phase is SpoutsPaused(clock).

**Recovery.** When the registry entry of a processor disappears, the negotiator begins a new epoch. All processors
restart in this epoch, and report the clocks of their snapshots. If the crash happened during a snapshot, the processors
have snapshots at different clocks. The negotiator chooses the newest clock at which every processor has a snapshot. In
this example it chooses C1, and the spouts send all records above C1 again:
    count-0         count-1        common to count-0 and count-1
    C1, C2          C1             C1

When all processors have saved their snapshots at a clock, the negotiator records in the snapshot store that this
clock is *complete*. After a crash, the topology usually restarts at the newest complete clock. In one case, it
restarts at a newer clock: the crash happened after all processors had saved their snapshots, but before the
negotiator recorded the clock as complete.

The topology never restarts at a clock older than the newest complete one. A sink can therefore write the outputs of
records below the newest complete clock: no restart repeats these outputs.

If a processor has lost its part of the newest complete snapshot, and no newer snapshot has the parts of all
processors, the negotiator ends the topology with an error.

**Failures.** If a processor reports a failure (an exception of the user's code, or records that have expired), the
negotiator ends the topology. A restart would not help, because the topology would fail again at the same record.

**State.** As in the paper, the negotiator has no state of its own. The snapshot store contains the number of the newest
epoch and the clock of the newest complete snapshot. (Each start of the topology begins a new epoch.) The registry
contains everything else. So if the negotiator crashes, another one can continue its work.

Only one negotiator works for a topology at a time: the one that has created the node `master` in the registry. The node
belongs to the session between this negotiator and the registry. When the session ends, the registry removes the node. A
second negotiator waits for this, and then creates the node itself. From then on, only the second one can write to the
node.

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
