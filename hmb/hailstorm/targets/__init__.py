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

A database target counts in a table how often a sink has started. For example, process A starts the sink, and
the count becomes 3. When process B starts the same sink, the count becomes 4. If process A writes after that,
the write fails.

A sink's topic target always uses the same transactional id. When a new instance of the sink starts, the
broker refuses all later writes of the previous instance (*fencing*).

When a sink starts, it checks that the target has not lost any outputs. For example, the sink's snapshot
contains offset 50 of a partition: the sink has written the outputs of all records below this offset. If the
target stores no offset for this partition, or a smaller one, the topology ends with an error.

A topic target writes a sink's outputs to a topic, and commits the sink's input offsets for a consumer group.
Suppose that a user deletes the topic. The outputs are lost, but the committed offsets remain. To detect the
loss, the target stores the topic's id with the offsets. It raises an error if the topic is later missing, or
has another id.

Source: KIP-98 and KIP-447 for Kafka's transactions. In the Hailstorm paper (chapter 3.5, "Sinks"), a sink
can repeat outputs after a crash. Targets prevent repeated outputs.
"""

from hmb.hailstorm.targets.database import DatabaseTarget, SqliteTarget
from hmb.hailstorm.targets.topic import TopicTarget

__all__ = ["DatabaseTarget", "SqliteTarget", "TopicTarget"]
