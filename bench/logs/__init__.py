"""Functions that write a large log without a broker.

Some benchmarks need a large log before they start, for example to measure recovery or compaction. A producer would need
more time to fill this log than the measurement takes, and the log would be different in each run. Therefore the modules
of this folder write Kafka's files directly into a broker's data directory before the broker starts.

Read in this order:
1. `many_partitions`   thousands of small logs, to measure how long the start of a broker takes
2. `unclean`           a log as a killed broker leaves it, to measure the recovery
3. `compactable`       a log with several values for each key, to measure compaction
4. `sparse`            a log of many GB that uses little disk space
"""
