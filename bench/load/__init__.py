"""Load: the programs and connections that keep a broker busy during a benchmark.

A benchmark of a broker must not be limited by its client. Three kinds of load therefore exist:

- *Performance clients* produce or consume as fast as they can and print one line of figures. Kafka's own tools are the
  common reference. HMB's clients have the same options and print the same line.
- *Client libraries*: the benchmark `clients` runs one library after the other with the same settings.
- *Prepared requests*: one thread sends the same bytes through many connections. It needs little CPU time, so that most
  of the machine is left for a broker with 1,000 connections.

Read in this order:

1. `workload`           the number of messages, their size, and the size of a batch
2. `producers`          the performance producers of Kafka 4.3.0, Kafka 0.8.2.2 and HMB; `perf_producer` is HMB's
3. `consumers`          the performance consumers of Kafka 4.3.0 and HMB; `perf_consumer` is HMB's
4. `library_client`     one client library of Python as a process
5. `repeated_requests`  the same request on many connections
6. `committers`         offset commits on many connections
7. `group_members`      members of consumer groups
"""
