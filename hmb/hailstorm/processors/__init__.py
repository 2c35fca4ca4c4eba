"""The processors: spouts, bolts and sinks as state machines without threads.

A processor is one instance of a spout, a bolt or a sink. Each start of the topology begins a new *epoch*. In
each epoch, a new state machine makes the decisions of the processor. The methods of the state machine never
wait for tuples or for other processors.

A *driver* is code that calls the methods of a state machine, for example when tuples have arrived. After the
call, the driver sends the tuples in the field `outbox` of the state machine.

Two kinds of drivers call the state machines. Runners call the state machines from threads, and send tuples
through sockets. The module `hmb.hailstorm.simulation` calls them in one thread. It chooses a random order of
events, and repeats this order for the same seed.

To report an event, a driver calls one of these methods of the state machine:
    observe(master)       the negotiator has published the decision `master`, for example to begin a snapshot
    receive(payloads)     another processor has sent the tuples in `payloads`
    saved(clock, error)   the save for the snapshot at `clock` has succeeded (`error` is None) or failed

After each call, the driver reads three fields of the state machine:
    outbox   the tuples to send to other processors, in this order
    save     the state to save in the background, or None
    report   a description of the processor's state, which the negotiator reads

**The snapshot of a bolt.** A snapshot has a *clock*, which contains one offset for each partition. The snapshot
contains exactly the tuples from records with smaller offsets. For example, if the clock contains 10 for the
partition tags-0, the snapshot contains the tuples from offsets 0 to 9 of tags-0.

A bolt takes a snapshot in five steps:
1. The negotiator requests the snapshot. The state of the bolt becomes the state A.
2. The bolt merges each tuple of the snapshot into A, and computes the outputs from A. All other tuples wait.
3. When all tuples of the snapshot have arrived, A is complete. A thread saves A in the background, and the bolt
   creates an empty state B.
4. During the save, the bolt merges the waiting tuples into B, and then all new tuples. It computes the outputs from
   merge(A, B).
5. After the save, merge(A, B) becomes the only state of the bolt.

HMB corrects two mistakes in the algorithm of the Hailstorm paper: paused spouts resume too early (see the
module `hmb.hailstorm.negotiator`), and bolts can send wrong outputs. Both mistakes lead to wrong snapshots.

This example shows a wrong output. A snapshot includes offsets 0 to 9 of the partition tags-0, and offsets 0 to
4 of tags-1. A bolt counts words, and receives "sun" twice, in this order:
    record                 in the snapshot   count sent
    offset 5 of tags-1     no                1
    offset 9 of tags-0     yes               2
The next bolt saves the count 2, because it comes from offset 9 of tags-0. But this count includes offset 5 of
tags-1. The correct count is 1.

Until a bolt in HMB has processed all tuples of a snapshot, all other tuples wait. The outputs that belong to
the snapshot therefore cannot depend on the waiting tuples. In a bolt without a state, no tuple waits, because
each output depends on only one tuple.

**The low water mark.** A processor sends a low water mark with each payload: one offset for each partition. It
promises to send no more tuples from records below these offsets.

A bolt computes its own low water mark: for each partition, the minimum of the marks that it receives. For
example, it receives the marks 10 and 12 for a partition from two processors, so its own mark is 10. All tuples
of this partition from offsets below 10 have arrived.

After all tuples below the offsets of the snapshot's clock have arrived, the bolt saves its state.

In three cases, the low water marks of the Hailstorm paper are not sufficient. HMB therefore adds three rules:
- A processor sends its mark even if it has no tuples to send. Otherwise, a receiver could wait for the mark
  forever.
- A bolt saves a snapshot when its own mark is equal to or greater than the snapshot's offset in each partition.
  For example, a snapshot has the offsets (10, 20), and the bolt saves it at the mark (12, 20).
- For each partition, a bolt waits only for the marks of processors that can send tuples of this partition. For
  example, a spout reads only the partition tags-0. For tags-1, the bolt does not wait for this spout.

Read the modules in this order. In a first reading, skip `combiner` and `event_time`:
- `low_water_marks`   computes an offset for each partition: all tuples from smaller offsets have arrived
- `emitter`           sends tuples and low water marks to the instances of the next nodes
- `spouts`            the state machine of a spout, which makes tuples from records
- `split_state`       the state of a bolt: one state, or two states during a snapshot
- `bolts`             the state machine of a bolt, with the steps of a snapshot
- `held_outputs`      keeps the outputs of a sink until a snapshot is complete
- `sinks`             the state machine of a sink
- `participant`       runs one processor, and makes a new state machine at each start of the topology
- `combiner`          merges the tuples of a batch, so that a processor sends fewer tuples
- `event_time`        handles event-time watermarks, late tuples and idle partitions

Source: Hailstorm, chapters 3.3 to 3.5.
"""
