"""Logs that a benchmark writes itself, without a broker.

A benchmark of a log's size, of recovery or of compaction needs a large log first. Producing this log through a broker
would take longer than the measurement, and the log would differ from run to run. These modules write Kafka's files
directly and put them into a broker's data directory while the broker does not run.

Read in this order:

1. `many_partitions`   thousands of small logs, for the start of a broker
2. `unclean`           a log that a broker has to check after a kill
3. `compactable`       a log with old values of each key, for compaction
4. `sparse`            a log of many GB that uses little disk space
"""
