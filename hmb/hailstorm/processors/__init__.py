"""The processors: spouts, bolts and sinks as state machines without threads.

A processor is one instance of a spout, a bolt or a sink. Each state machine of this folder does the work of one
processor in one *epoch* (from one start of the topology to the next). A *driver* is the code that calls the methods of
a state machine when something has happened, for example when tuples have arrived. After each call, the fields of the
state machine contain what the driver must do next, for example the tuples to send. A state machine never waits and
never reads the time.

Two kinds of drivers call the state machines. The runners call them from threads, and connect them with sockets. The
module `hmb.hailstorm.simulation` calls them with a seeded random order of events.

A driver reports each event by a method of the state machine:
    observe(master)     the negotiator has published a decision: for example, a snapshot begins
    receive(payloads)   an upstream processor has sent these tuples to a bolt or a sink
    saved(clock)        the state for the snapshot at `clock` has been saved, or the save has failed

After each call, the driver reads three fields of the state machine:
    outbox   the tuples to send to other processors, in this order
    save     the state to save in the background, or None
    report   a description of the processor's state, which the negotiator reads

**The snapshot of a bolt.** A clock C has an offset C[p] for each partition p. A tuple that comes from the record of
partition p at offset o is below C if o < C[p], and above C otherwise. A snapshot at C contains the tuples below C. The
bolt has one state S. The function `lift(t)` makes a state of one tuple t, and `merge` makes one state of two. The bolt
takes the snapshot in five steps:
    1. the negotiator requests     the bolt renames S to A
       a snapshot at C
    2. the bolt waits for all      each tuple t below C: A = merge(A, lift(t)), outputs computed from A
       tuples below C              each tuple above C: the tuple waits
    3. all tuples below C have     A is complete, and a thread saves A in the background;
       arrived                     the bolt begins an empty state B
    4. the bolt continues          first each waiting tuple t, then each new tuple t (all are above C):
       while A is saved            B = merge(B, lift(t)), outputs computed from merge(A, B)
    5. A is saved                  S = merge(A, B)

The Hailstorm paper has an error in this protocol. A snapshot at clock C must depend only on tuples below C (tuples from
records below the offsets in C). In the paper, a bolt computes its outputs from *all* tuples that it has received, even
while tuples below C still arrive. Suppose that a tuple above C overtakes a tuple below C. The output for the tuple
below C then depends on the tuple above C. This output itself counts as a tuple below C, so the next bolt merges it into
its snapshot. The snapshot of the next bolt is then wrong.

During a snapshot at clock C, a bolt of HMB first processes all tuples below C, which come from records below the
offsets in C. The tuples above C wait until then, so they cannot change the outputs for the tuples below C. In a bolt
without a state, no tuple waits, because each output depends on only one tuple.

**The low water mark.** The low water mark of a processor contains one offset for each partition. It is a promise: the
processor will send no more tuples from records below these offsets. Each payload contains the low water mark of its
sender. For each partition, a bolt takes the minimum of the marks of its upstream processors. Channels keep the order of
payloads, so no tuple below this minimum can arrive any more. When the minimum reaches the clock of a snapshot in every
partition, the bolt has received all tuples for this snapshot.

The low water mark of a processor contains one offset for each partition: the processor will send no more tuples from
records below these offsets. A bolt computes its own mark from the marks that it receives, and saves its snapshot when
its mark reaches the clock of the snapshot. The rule of the Hailstorm paper for low water marks fails in three cases.
HMB therefore has three additional rules:
- A processor sends its mark even if it has no tuples to send. Otherwise an instance that receives no tuples would never
  receive a mark either, and the snapshot would wait forever.
- A bolt saves its snapshot when its mark is at or above the clock of the snapshot. A bolt that waited for a mark equal
  to the clock could wait forever. For example, at a transaction marker or a compacted record, a spout goes from offset
  7 to offset 9, and never sends the mark 8.
- A bolt takes the minimum of the marks for each partition separately. Some upstream processors can send no tuples of a
  partition, so the minimum for this partition does not include them. For example, the spout that reads tags-0 sends no
  tuples of tags-1, and no mark for tags-1.

Read in this order:
- `low_water_marks`   finds the offset of each partition below which no more tuples can arrive at a processor
- `emitter`           sends tuples and low water marks to the instances of the following nodes
- `spouts`            the state machine of a spout: makes payloads of records, pauses and rewinds
- `split_state`       the state of a bolt: one state, or two states during a snapshot
- `bolts`             the state machine of a bolt, with the steps of a snapshot
- `held_outputs`      outputs that a sink holds back until a snapshot is complete
- `sinks`             the state machine of a sink
- `participant`       runs one processor, and makes a new state machine at each start of the topology
- `combiner`          merges the tuples of a batch before they are sent; an optimisation, skip it in a first reading
- `event_time`        event-time watermarks, late tuples, idle partitions; skip it in a first reading

Source: Hailstorm, chapters 3.3 to 3.5.
"""
