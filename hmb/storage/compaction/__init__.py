"""Compaction: a log with `cleanup.policy=compact` keeps the last record of each key.

A compacted log is a table in the form of its changes. A reader that starts at its beginning knows the last value of
each key at its end. Compaction writes the older segments again, without the records that later ones have replaced::

    offset    0    1    2    3    4    5        before
    key       a    b    a    c    b    a

    offset                   3    4    5        after: offsets stay, and gaps are allowed
    key                      c    b    a

The new segment takes the place of the old ones in a swap, which a crash may interrupt at any step.

Read in this order:

- `rule`      which records stay
- `cleaner`   which logs and segments are compacted, and when
- `swap`      how a new segment takes the place of old ones

Source: Kafka's `LogCleaner`; KIP-58, KIP-354, KIP-534.
"""
