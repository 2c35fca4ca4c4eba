"""Targets: where `TransactionalSink` writes outputs exactly once.

Exactly-once outputs need one transaction that contains both the outputs and the clock up to which they reach.
If the transaction commits and the sink then crashes, the restarted sink finds the clock, and writes no output twice. If
the transaction does not commit, the outputs are still in the snapshot of the sink, and the restarted sink writes them.

    DatabaseTarget    the user's tables and a table `hailstorm_clock`, in any database with a DB-API module
    SqliteTarget      the same for an SQLite file and one statement
    TopicTarget       a topic of HMB or Kafka: outputs are records, the clock is committed as the offsets of a group,
                      and a transaction joins them; consumers read with isolation level read_committed

The previous instance of a sink can still run when a new one starts. The new instance prevents writes of the previous
one: in a database by the epoch in the table, in a topic by the producer's transactional id.

Source: the transactions of KIP-98 and KIP-447. The Hailstorm paper has no exactly-once outputs (chapter 3.5, "Sinks").
"""

from hmb.hailstorm.targets.database import DatabaseTarget, SqliteTarget
from hmb.hailstorm.targets.topic import TopicTarget

__all__ = ["DatabaseTarget", "SqliteTarget", "TopicTarget"]
