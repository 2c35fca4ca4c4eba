"""The processors: spouts, bolts and sinks as state machines without threads.

A processor is one instance of a spout, a bolt or a sink. Each start of the topology begins a new *epoch*. A
state machine of this folder does the work of one processor in one epoch. A *driver* is the code that calls the
methods of a state machine. It does this when something has happened, for example when tuples have arrived.
After each call, the driver reads from the fields of the state machine what to do next, for example which tuples
to send. The state machine itself never waits and never reads the time.

Two kinds of drivers call the state machines. The first kind are the runners: they call the state machines from
threads, and send tuples through sockets. The other driver is the module `hmb.hailstorm.simulation`. It runs the
events in a random order, and can repeat an order with the same seed.

To report an event, a driver calls a method of the state machine:
    observe(master)     the negotiator has published a decision: for example, a snapshot begins
    receive(payloads)   an upstream processor has sent these tuples to a bolt or a sink
    saved(clock)        the driver has saved the state for the snapshot at `clock`, or could not save it

After each call, the driver reads three fields of the state machine:
    outbox   the tuples to send to other processors, in this order
    save     the state to save in the background, or None
    report   a description of the processor's state, which the negotiator reads

**The snapshot of a bolt.** A clock C has an offset C[p] for each partition p. A tuple comes from a record at an
offset o of a partition p. The tuple is below C if o < C[p], and otherwise above C. A snapshot at C contains exactly
the tuples below C. A bolt has one state S. The function `lift(t)` turns one tuple t into a state. The function
`merge` combines two states into one state. The bolt takes the snapshot in five steps:
    1. the negotiator requests     the bolt renames S to A
       a snapshot at C
    2. the bolt waits for all      each tuple t below C: A = merge(A, lift(t)), outputs computed from A
       tuples below C              each tuple above C: the tuple waits
    3. all tuples below C have     A is complete, and a thread saves A in the background;
       arrived                     the bolt begins an empty state B
    4. the bolt continues          first each waiting tuple t, then each new tuple t (all are above C):
       while A is saved            B = merge(B, lift(t)), outputs computed from merge(A, B)
    5. A is saved                  S = merge(A, B)

The Hailstorm paper has two errors in its snapshots. In the first one, the spouts resume too early (see
`hmb.hailstorm.negotiator`). The second one is in the outputs of a bolt. A snapshot at clock C must depend only
on tuples below C: on tuples from records below the offsets in C. But in the paper, a bolt computes each output
from *all* tuples that it has received so far. Suppose that a tuple above C arrives before a tuple below C. The
output for the second tuple then depends on both tuples, but counts as a tuple below C. So the next bolt merges
this output into its snapshot, and this snapshot is wrong.

During a snapshot at clock C, a bolt of HMB first processes the tuples below C: the tuples from records below
the offsets in C. A tuple above C must wait until all tuples below C have been processed. So it cannot change
their outputs. A bolt without a state computes each output from only one tuple, so no tuple has to wait there.

**The low water mark.** A processor has a low water mark, which contains one offset for each partition. The
processor promises that it will send no more tuples from records below these offsets. It sends its mark with
each payload. A bolt receives marks from several processors, and takes the minimum for each partition. Channels
keep the order of payloads, so tuples below this minimum can no longer arrive. The clock of a snapshot also
contains one offset for each partition. When the minimum has reached the clock in every partition, the bolt has
received all tuples for this snapshot.

A low water mark contains one offset for each partition. A processor that sends a low water mark promises to send no
more tuples from records below these offsets. A bolt computes its own mark from the marks that it receives.

Each snapshot has a *clock*, which contains one offset for each partition. When the low water mark of a bolt reaches
the clock, the bolt saves its state for the snapshot.

The Hailstorm paper has a rule for low water marks, but this rule fails in three cases. HMB therefore has three
additional rules:

- A processor sends its low water mark even if it has no tuples to send. Otherwise the receiver could wait for a mark
  forever, and the snapshot would never be complete.

- A bolt saves its state when its low water mark is at or above the clock. The mark need not be equal to the clock,
  because marks can skip offsets. For example, offset 8 is a transaction marker, so the mark of a spout goes from 7 to
  9.

- For each partition, a bolt takes the smallest offset from the marks of those processors that can send tuples of this
  partition. For example, the spout of the partition tags-0 sends no offset for tags-1, and the bolt does not wait for
  one.

Read in this order. Skip the last two modules in a first reading:
- `low_water_marks`   computes up to which offset of each partition all tuples have arrived at a processor
- `emitter`           sends tuples and low water marks to the instances of the next nodes
- `spouts`            the state machine of a spout, which makes tuples from records
- `split_state`       the state of a bolt: one state, or two states during a snapshot
- `bolts`             the state machine of a bolt, with the steps of a snapshot
- `held_outputs`      keeps the outputs of a sink until a snapshot is complete
- `sinks`             the state machine of a sink
- `participant`       runs one processor, and makes a new state machine at each start of the topology
- `combiner`          merges the tuples of a batch before they are sent, to send fewer tuples
- `event_time`        handles event-time watermarks, late tuples and idle partitions

Source: Hailstorm, chapters 3.3 to 3.5.
"""
