"""Hailstorm: exactly-once stream processing on commutative monoids.

A stream processor reads records from topics as they arrive. In several steps, it computes states from the
records, for example counts of words. When a machine crashes, some records are already counted, and others are
not. Suppose that the stream processor then continues at the last position that it stored. If the states are
newer than this position, it counts some records twice. If the states are older, it never counts some records.

With Hailstorm, each record counts exactly once, even if processors crash. Two ideas make this possible.

First, each state is a *commutative monoid*: two states can be merged, and neither the order nor the grouping of the
merges changes the result.

Second, each snapshot has a *clock*: one offset for each partition. On every processor, the snapshot includes
exactly the tuples from records below their partition's offset. With offset 11 for tags-0, the snapshot includes
records 0 to 10 of tags-0.

The processors do not have to stop at the same time for a snapshot. Each tuple carries the partition and the
offset of its record, so a bolt can recognize tuples that do not belong to the snapshot. A bolt with a state
processes these tuples only after it has processed all tuples of the snapshot.

After a crash, Hailstorm loads all states from the newest snapshot that every processor has saved. For example,
these states include the records of partition tags-0 at offsets 0 to 10. The spout that reads tags-0 then
continues at offset 11. So each record counts exactly once in the states.

The next drawing shows a topology that counts the hashtags in the topic `tags`. Tuples move from left to right. C is
the clock of a snapshot. The states in the snapshot store include exactly the tuples from records below the offsets
in C:
    tags-0 ----> spout tags-0 --+--> bolt count-0 --+
                                |                   +--> bolt topn-0 ---> sink console-0
    tags-1 ----> spout tags-1 --+--> bolt count-1 --+
                                           |                  |
                                           v                  v
    snapshot store:          count-0 at C, count-1 at C, topn-0 at C

A component called the *negotiator* decides when the topology takes a snapshot, and which records the snapshot
includes. The negotiator stores its newest decision, the *master state*, in the *registry*, a small store of
shared values. Every spout, bolt and sink reads the master state from the registry.

The smallest Hailstorm program counts the words of the topic `lines`:
    import hmb
    from hmb.hailstorm import Bolt, Sink, Spout, Sum, Topology, run
    topology = Topology("words")
    topology.spout("lines", Spout("lines"))
    topology.bolt("split", Bolt.stateless(str.split), after="lines", group=str)
    topology.bolt("count", Bolt.keyed(Sum(), key=str, value=lambda word: 1), after="split")
    topology.sink("console", Sink(print), after="count")
    print(run(topology, "localhost:9092", until="end").states["count"])

Read the modules in this order. The text at the top of each module explains one part of Hailstorm:
- `clock`                 one offset for each partition: how far a topology has read its topics
- `payload`               a tuple with its origin: the partition and the offset of its record
- `monoids`               the states that a topology computes, for example sums and maps
- `spout`, `bolt`, `sink`, `grouping`, `topology`    the parts that a user declares
- `processors`            the state machines that run the spouts, bolts and sinks, and take snapshots
- `master`, `negotiator`  the decisions: when to take a snapshot, and which snapshot to load after a crash
- `snapshots`             the stores that keep states after a crash
- `simulation`            runs a whole topology in one thread, with a random order of events
- `checking`              checks whether a topology computes exact results
- `registry`, `runners`   the processes, threads and sockets that run the state machines
- `targets`               databases and topics that receive each output exactly once
- `codec`                 encodes values as bytes
- `wire`                  sends values on sockets
- `reference`             finds a topology by its name
- `errors`                Hailstorm's exceptions

Source: Dimson and Ganjoo, "Hailstorm: Distributed Stream Processing with Exactly Once Semantics" (Stanford, CS240h,
2014). The documentation's chapter on Hailstorm has a table of the paper's statements. The table shows where this
implementation differs from the paper.
"""

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking import check
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import register
from hmb.hailstorm.errors import (
    CodecError,
    HailstormError,
    SnapshotError,
    StaleEpochError,
    TopologyError,
    UserCodeError,
)
from hmb.hailstorm.monoids import (
    CountMin,
    FloatSum,
    HyperLogLog,
    MapOf,
    Max,
    Mean,
    Min,
    Monoid,
    Newest,
    Quantiles,
    Sessions,
    SetOf,
    Sliding,
    Sum,
    TopN,
    Tumbling,
)
from hmb.hailstorm.payload import TupleId
from hmb.hailstorm.runners import RunResult, run, start
from hmb.hailstorm.sink import HeldBackSink, IdempotentSink, Sink, TransactionalSink
from hmb.hailstorm.snapshots import DirectorySnapshotStore, MemorySnapshotStore, SqliteSnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.targets import DatabaseTarget, SqliteTarget, TopicTarget
from hmb.hailstorm.topology import Topology

__all__ = [
    "Bolt",
    "Clock",
    "CodecError",
    "CountMin",
    "DatabaseTarget",
    "DirectorySnapshotStore",
    "FloatSum",
    "HailstormError",
    "HeldBackSink",
    "HyperLogLog",
    "IdempotentSink",
    "MapOf",
    "Max",
    "Mean",
    "MemorySnapshotStore",
    "Min",
    "Monoid",
    "Newest",
    "Quantiles",
    "RunResult",
    "Sessions",
    "SetOf",
    "Sink",
    "Sliding",
    "SnapshotError",
    "Spout",
    "SqliteSnapshotStore",
    "SqliteTarget",
    "StaleEpochError",
    "Sum",
    "TopN",
    "TopicTarget",
    "Topology",
    "TopologyError",
    "TransactionalSink",
    "Tumbling",
    "TupleId",
    "UserCodeError",
    "check",
    "register",
    "run",
    "start",
]
