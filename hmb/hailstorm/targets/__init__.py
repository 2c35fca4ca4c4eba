"""Targets: the databases and topics to which a `TransactionalSink` writes each output exactly once.

To write each output exactly once, a sink needs one transaction that contains the outputs and a clock. The clock shows
which outputs the target contains: all outputs up to this clock. If the sink crashes after the transaction has
committed, the restarted sink reads the clock from the target, so it writes no output twice. If the transaction has not
committed, the outputs are still in the snapshot of the sink, and the restarted sink writes them.

Three targets exist. The module `database` contains the first two targets, and `topic` contains the third target:
    DatabaseTarget    the user's tables and a table `hailstorm_clock`, in any database with a DB-API module
    SqliteTarget      an SQLite file with such tables, and one SQL statement that writes each output
    TopicTarget       a topic of HMB or Kafka: outputs are records, the clock is committed as the offsets of a group,
                      and one transaction contains both; consumers read with isolation level read_committed

When a new instance of a sink starts, the previous instance may still run. The target prevents writes of the previous
instance. A database target stores in its table how often the sink has started. Each instance remembers its number, and
a write fails if the table contains a higher number. A topic target uses the producer's transactional id: when the new
instance starts, the broker rejects further writes of the previous instance.

When a sink starts, it checks that the target contains all outputs that the sink has written. The sink compares the
clock in the target with the clock of its snapshot. A topic target also compares the id of its topic, because the clock
is not stored in the topic itself. If the target or its topic was deleted or created again, the topology ends with an
error.

Source: the transactions of KIP-98 and KIP-447. The Hailstorm paper has no exactly-once outputs (chapter 3.5, "Sinks").
"""

from hmb.hailstorm.targets.database import DatabaseTarget, SqliteTarget
from hmb.hailstorm.targets.topic import TopicTarget

__all__ = ["DatabaseTarget", "SqliteTarget", "TopicTarget"]
