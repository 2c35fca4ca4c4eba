"""The processors: spouts, bolts and sinks as state machines without threads.

Each state machine of this folder does the work of one processor in one epoch. A driver calls a state machine when the
master state changes, when payloads arrive, and when a save has ended. After each call, the fields of the state machine
contain the payloads to send, the state to save, and the report. A state machine never waits, reads the time or opens a
file.

Two kinds of drivers call the state machines. The runners call them from threads, and connect them with sockets. The
module `hmb.hailstorm.simulation` calls them with a seeded random order of events.

This table shows the methods of a state machine on the left side, and its fields on the right side:
    observe(master)     the registry has a new master state     outbox   payloads to send, in order
    receive(payloads)   an upstream processor has sent these    save     a state to save in the background, or None
    saved(clock)        the save has ended                      report   the value of the registry entry

**The snapshot of a bolt.** A bolt has one state S. When the negotiator requests a snapshot at clock C, the bolt renames
S to A. A tuple from partition p at offset o is below C if o < C[p], and above C otherwise. The snapshot takes five
steps:
    1. the request arrives         A = S
    2. until the bolt's low        each tuple t below C: A = merge(A, lift(t)), outputs computed from A
       water mark reaches C        each tuple above C: the tuple waits
    3. the mark reaches C          A is complete, and is saved in the background; B = empty
    4. until A is saved            first each waiting tuple t, then each new tuple t; all of them are above C:
                                   B = merge(B, lift(t)), outputs computed from merge(A, B)
    5. A is saved                  S = merge(A, B)

While a bolt saves a snapshot at clock C, its state has two parts: A with the tuples below C, and B with the tuples
above C.

In the Hailstorm paper, no tuple waits during a snapshot at clock C. While tuples below C still arrive, a bolt already
merges tuples above C into its second state B. It computes all outputs from merge(A, B), where A is the state of the
tuples below C. So the output for a tuple below C can depend on tuples above C. The next bolt merges this output into
its snapshot at C, which must not depend on tuples above C.

In this implementation, the tuples above C wait until A contains all tuples below C. The outputs for the tuples below C
are therefore computed from A alone. In a bolt without a state, no tuple waits.

**The low water mark.** The low water mark of a processor is a clock below which the processor will send nothing more.
Each payload contains the low water mark of its sender. A channel keeps the order of its payloads. A bolt takes the
minimum of the marks of all its upstream processors, and no tuple below this minimum can arrive any more. When the
minimum reaches the clock C of a snapshot, the bolt has received all tuples for this snapshot.

The rule of the Hailstorm paper for low water marks fails in three cases. HMB therefore has three additional rules:
- A processor sends its mark even if it has no tuples to send. Otherwise an instance that receives no tuples would never
  receive a mark either, and the snapshot would wait forever.
- A bolt saves its snapshot when its mark is at or above the clock of the snapshot. A bolt that waited for a mark equal
  to the clock could wait forever. For example, at a transaction marker or a compacted record, a spout goes from offset
  7 to offset 9, and never sends the mark 8.
- A bolt takes the minimum of the marks for each partition separately. The minimum for a partition includes only the
  upstream processors that records of this partition can reach. The spout of tags-0, for example, sends no mark for
  tags-1.

Read in this order:
- `low_water_marks`   the minimum of the marks of the upstream processors
- `emitter`           sends tuples and marks to the instances of the following nodes
- `spouts`            the state machine of a spout: makes payloads of records, pauses and rewinds
- `split_state`       the state of a bolt: one state, or two states during a snapshot
- `bolts`             the state machine of a bolt, with the steps of a snapshot
- `held_outputs`      outputs that a sink holds back until a snapshot is complete
- `sinks`             the state machine of a sink
- `participant`       runs one processor in all epochs of its topology
- `combiner`          merges the tuples of a batch before they are sent; an optimisation, skip it in a first reading
- `event_time`        event-time watermarks, late tuples, idle partitions; skip it in a first reading

Source: Hailstorm, chapters 3.3 to 3.5.
"""
