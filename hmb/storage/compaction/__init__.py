"""Compaction: a log with `cleanup.policy=compact` keeps the last record of each key.

A compacted log stores the changes of a table: each record sets the value of one key. When a reader has read the log
from its beginning to its end, the reader knows the last value of each key. So a record is not needed any more if a
later record has the same key. Compaction copies only the records that are still needed to a new segment:
    old segments    offset    0    1    2    3    4    5
                    key       a    b    a    c    b    a
    new segment     offset                   3    4    5        the records keep their offsets
                    key                      c    b    a

At the end of a compaction, the new segment replaces the old segments. This step is the *swap*. If the broker
crashes during the swap, its next start completes or undoes the swap. No record is lost or duplicated.

Read in this order:
- `rule`      which records stay
- `cleaner`   which logs and segments are compacted, and when
- `swap`      how a new segment replaces old segments
- `throttle`  a limit on how fast the cleaner reads and writes

Source: Kafka's `LogCleaner`; KIP-58, KIP-354, KIP-534.
"""
