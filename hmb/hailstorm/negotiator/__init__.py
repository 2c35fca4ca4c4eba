"""The negotiator: takes snapshots while data flows, and recovers the topology when a processor is lost.

The negotiator works in rounds. If nothing fails, each round takes one snapshot:
1. Data flows during the grace period.
2. The spouts pause. For each partition, the *clock* of the snapshot contains the offset that a spout reads next.
3. The spouts resume. Each processor saves a state that includes exactly the records below the clock's offsets.
4. When every processor has saved its state, the snapshot is complete.

The table `steps.STEPS` contains the steps of a round, and the steps after a failure. The documentation draws its
picture of the state machine from this table.

HMB takes a snapshot in the same four steps as the Hailstorm paper. But with the paper's algorithm, a snapshot
can contain too many tuples. HMB corrects this error with an additional phase.

Suppose that a snapshot must include only offsets 0 to 9 of a partition. The snapshot's clock contains the
offset 10. In the Hailstorm paper, the spouts resume before all bolts know the clock. A bolt can therefore add
the tuple at offset 10 to the snapshot. After a crash, a spout sends this tuple again, and the bolt counts it
twice.

HMB has a phase that the Hailstorm paper does not have: SpoutsPaused(clock). The clock contains one offset for
each partition, and the snapshot includes only records below these offsets. Each processor that saves snapshots
confirms to the negotiator that it has received the clock. The spouts stay paused until all processors have
confirmed this.

**Recovery.** When the registry entry of a processor disappears, the negotiator begins a new epoch. All processors
restart in this epoch, and report the clocks of their snapshots. If the crash happened during a snapshot, the processors
have snapshots at different clocks. The negotiator chooses the newest clock at which every processor has a snapshot. In
this example it chooses C1, and the spouts send all records above C1 again:
    count-0         count-1        common to count-0 and count-1
    C1, C2          C1             C1

When all processors have saved their snapshots at a clock, the negotiator records in the snapshot store that
this clock is *complete*. The clock at which a topology restarts is usually complete, but not always. For
example, a crash can happen after all processors have saved their snapshots, but before the negotiator records
the clock.

Suppose that the newest complete snapshot covers the records at the offsets 0 to 9 of a partition. Each restart
begins at this snapshot or a newer one, so the topology does not process these records again. A sink can
therefore write their outputs.

Suppose that a processor has lost its part of the newest complete snapshot. If all processors have saved a
newer snapshot that is not yet recorded as complete, the topology restarts from that snapshot. Otherwise, the
negotiator ends the topology with an error.

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
- `machine`       the class `Negotiator`: it takes the steps, and has one method for each action

Source: Hailstorm, chapter 3.6, "Negotiator", and figure 4.
"""

from hmb.hailstorm.negotiator.conditions import NegotiatorSettings, RegistryView
from hmb.hailstorm.negotiator.machine import EpochStore, Negotiator
from hmb.hailstorm.negotiator.steps import STEPS, NegotiatorEvent, Step

__all__ = ["STEPS", "EpochStore", "Negotiator", "NegotiatorEvent", "NegotiatorSettings", "RegistryView", "Step"]
