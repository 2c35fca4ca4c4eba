"""Scenarios: the benchmarks of `hmb bench`, one module for each.

HMB claims to be about as fast as Kafka, and sometimes faster. A reader should not have to believe this claim. Each
scenario is therefore a command that anyone can repeat. It starts the brokers, measures them alternately on one machine,
and keeps every run.

A module has three parts. Its essay says what is measured, and what a run must prove before it counts. Its `VIEW`
declares the tables. Its `command` measures. The options and the rounds are shared (`hmb.bench.measurement`).

Read in this order:

1. `start`                 the smallest scenario: from the start of a process to the first acknowledged record
2. `produce`               records per second of a producer, and CPU time per record
3. `consume`, `latency`    the same for a consumer, and the time of a single record
4. `clients`               client libraries of Python
5. `connections`           many connections and partitions
6. `groups`, `commits`     many groups, and many commits
7. `fetch`                 fetch sessions
8. `threads`               layouts of threads
9. `memory`, `growth`      memory, and what grows with the work
10. `recovery`, `compaction`   work on a log
11. `spark`                 Spark's data sources
"""
