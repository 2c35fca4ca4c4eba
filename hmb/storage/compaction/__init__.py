"""Compaction: a log with `cleanup.policy=compact` keeps the last record of each key.

A compacted log stores the changes of a table: each record sets the value of one key. When a reader has read the log
from its beginning to its end, it knows the last value of each key. So a record is not needed any more if a later record
has the same key. Compaction writes the older segments again, without such records:
    offset    0    1    2    3    4    5        before
    key       a    b    a    c    b    a

    offset                   3    4    5        after: offsets stay, and gaps are allowed
    key                      c    b    a

The new segment then replaces the old segments in a swap. A crash may interrupt the swap at any step without harm.

Read in this order:
- `rule`      which records stay
- `cleaner`   which logs and segments are compacted, and when
- `swap`      how a new segment replaces old segments

Source: Kafka's `LogCleaner`; KIP-58, KIP-354, KIP-534.
"""
