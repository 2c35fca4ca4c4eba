"""Targets: where `TransactionalSink` writes outputs exactly once.

Exactly once at the outside needs one transaction that contains both the outputs and the clock up to which they reach.
If the transaction commits and the sink then crashes, the restarted sink finds the clock, and writes nothing twice. If
it does not commit, the outputs are still in the snapshot of the sink, and the restarted sink writes them.

    DatabaseTarget    a table `hailstorm_clock` beside the user's tables, in any database with a DB-API module
    SqliteTarget      the same for an SQLite file and one statement
    TopicTarget       a topic of HMB or Kafka: outputs are records, the clock is committed as the offsets of a group,
                      and a transaction joins them; consumers read with isolation level read_committed

Each start of a sink shuts out its predecessor, which may still run: a database by the epoch in the table, a topic by
the producer's transactional id.

Source: the transactions of KIP-98 and KIP-447; Hailstorm, chapter 3.5, "Sinks", leaves exactly once outside open.
"""

from hmb.hailstorm.targets.database import DatabaseTarget, SqliteTarget
from hmb.hailstorm.targets.topic import TopicTarget

__all__ = ["DatabaseTarget", "SqliteTarget", "TopicTarget"]
