"""Targets: the databases and topics to which a `TransactionalSink` writes each output exactly once.

To write each output exactly once, a sink needs one transaction that contains the outputs and a clock. The clock shows
which outputs the target contains: all outputs up to this clock. If the sink crashes after the transaction has
committed, the restarted sink reads the clock from the target, so it writes no output twice. If the transaction has not
committed, the outputs are still in the snapshot of the sink, and the restarted sink writes them.

Three targets exist. A target stores the outputs of a sink, and a *clock*: one offset for each partition that the
topology reads. The target contains the outputs of all records below these offsets. The module `database` contains the
first two targets, and `topic` contains the third target:
    DatabaseTarget    the user's tables and a table `hailstorm_clock`, in any database with a DB-API module
    SqliteTarget      an SQLite file with such tables, and one SQL statement that writes each output
    TopicTarget       a topic of HMB or Kafka. The target writes outputs as records, and commits the clock as the
                      offsets of a consumer group, both in one transaction. Consumers of the topic must read with
                      isolation level read_committed.

When a new instance of a sink starts, the previous instance may still run. The target must refuse the writes of the
previous instance. A database target counts the starts of the sink, and stores this number in its table. Each instance
remembers the number of its own start. If the table contains a higher number, a write of the instance fails. A topic
target uses the producer's transactional id: when the new instance starts, the broker rejects further writes of the
previous instance.

When a sink starts, it checks that the target has not lost any of its outputs. The sink compares two sets of offsets, a
set from the target and a set from its own snapshot. Each set contains one offset for each partition. The target should
contain the outputs of all records below these offsets. If the offsets in the target are missing or smaller than those
in the snapshot, outputs are lost, and the topology ends with an error. A topic target stores its offsets in a consumer
group, so they remain when the topic is deleted. The target therefore also compares the id of the topic, and raises an
error if the topic was deleted or created again.

Source: the transactions of KIP-98 and KIP-447. The Hailstorm paper has no exactly-once outputs (chapter 3.5, "Sinks").
"""

from hmb.hailstorm.targets.database import DatabaseTarget, SqliteTarget
from hmb.hailstorm.targets.topic import TopicTarget

__all__ = ["DatabaseTarget", "SqliteTarget", "TopicTarget"]
