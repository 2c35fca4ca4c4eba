"""Targets: the databases and topics to which a `TransactionalSink` writes each output exactly once.

To write each output exactly once, a sink writes its outputs and a clock in one transaction. The clock shows
which outputs the target already contains. Suppose that the sink crashes during a transaction. At its next
start, it reads the clock from the target:
- If the transaction has committed, the sink does not write its outputs again.
- If the transaction has not committed, the outputs are still in the snapshot of the sink. The sink then
  writes them.

A target stores two things: the outputs of a sink, and a *clock*. The clock contains one offset for each
partition that the topology reads. The outputs of all records below these offsets are in the target. There are
three kinds of targets. The first two are in the module `database`, and the third is in the module `topic`:
    DatabaseTarget    tables of the user and a table `hailstorm_clock`, in any database with a DB-API module. The user
                      passes two functions: one opens a connection, the other one writes outputs.
    SqliteTarget      the same tables in an SQLite file. The user passes no functions, but the path of the file and an
                      SQL statement. The target executes this statement for each output.
    TopicTarget       a topic of HMB or Kafka. One transaction writes the outputs as records, and commits the clock as
                      the offsets of a consumer group. Consumers of the topic must use the isolation level
                      read_committed.

When a new instance of a sink starts, the previous instance can still be running. The target must then refuse
the writes of the previous instance.

A database target stores in its table how often the sink has started. Each instance remembers the number of
its own start. If the table contains a higher number than this, the write of the instance fails.

A topic target uses a transactional id. When a new instance starts, the broker fences the producer of the
previous instance.

When a sink starts, it checks that the target has not lost any outputs. It compares the clock in the target with the
clock in its own snapshot. Each clock contains one offset for each partition that the topology reads. If an offset in
the target is missing, or smaller than in the snapshot, outputs are lost. The topology then ends with an error.

A topic target stores its clock in a consumer group. If a user deletes the target's topic, the outputs are lost, but
the clock remains. To notice this, the target stores the id of the topic together with the clock. Later it compares the
stored id with the present id, and raises an error if the topic was deleted or created again.

Source: KIP-98 and KIP-447 for Kafka's transactions. The sinks in the Hailstorm paper do not write each output
exactly once (chapter 3.5, "Sinks").
"""

from hmb.hailstorm.targets.database import DatabaseTarget, SqliteTarget
from hmb.hailstorm.targets.topic import TopicTarget

__all__ = ["DatabaseTarget", "SqliteTarget", "TopicTarget"]
