"""Functions that write a large log without a broker.

Some benchmarks need a large log before they start, for example to measure recovery or compaction. A producer would need
more time to fill this log than the measurement takes, and the log would be different in each run. Therefore the modules
of this folder write Kafka's files directly into a broker's data directory before the broker starts.

Read in this order:
1. `many_partitions`   thousands of small logs, for the start of a broker
2. `unclean`           a log that a broker must check at its next start, because the broker was killed
3. `compactable`       a log with several values of each key, for compaction
4. `sparse`            a log of many GB that uses little disk space
"""
