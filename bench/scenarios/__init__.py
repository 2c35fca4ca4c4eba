"""Scenarios: the benchmarks of `hmb bench`, one module for each.

HMB claims to be about as fast as Kafka, and sometimes faster. A reader should be able to check this claim. Therefore
each scenario is a command that anyone can run. It starts the brokers, measures them alternately on one machine, and
stores the results of every run.

Each module of this folder contains one benchmark. The docstring of the module says what the benchmark measures,
and which checks a run must pass. `VIEW` declares the tables of the results. The function `command` runs the
benchmark. `hmb.bench.measurement` defines the options that all benchmarks have.

Read in this order:
1. `start`                 the smallest scenario: from the start of a process to the first acknowledged record
2. `produce`               records per second of a producer, and CPU time per record
3. `consume`, `latency`    records per second of a consumer, and the time of one record from producer to consumer
4. `clients`               client libraries for Python
5. `connections`           many connections and partitions
6. `groups`, `commits`     many groups, and many commits
7. `fetch`                 fetch sessions
8. `threads`               one thread for each connection, compared with a fixed number of threads
9. `memory`, `growth`      memory, and costs that depend on the number of connections or the size of a log
10. `recovery`, `compaction`   the start after a kill, and the compaction of a log
11. `spark`                two data sources for Spark
"""
