"""Load: the programs and connections that keep a broker busy during a benchmark.

A benchmark of a broker must not measure its client instead. Three kinds of load therefore exist:

- *Performance clients* produce or consume as fast as they can and print one line of figures. Kafka's own tools are the
  reference for everybody. HMB's clients have the same options and print the same line.
- *Client libraries*: the benchmark `clients` runs one library after the other with the same settings.
- *Prepared requests*: one thread sends the same bytes through many connections. It costs the machine little, so that a
  broker with 1,000 connections has the rest.

Read in this order:

1. `workload`           how many messages of which size, in batches of which size
2. `producers`          the performance producers of Kafka 4.3.0, Kafka 0.8.2.2 and HMB; `perf_producer` is HMB's
3. `consumers`          the performance consumers of Kafka 4.3.0 and HMB; `perf_consumer` is HMB's
4. `library_client`     one client library of Python as a process
5. `repeated_requests`  the same request on many connections
6. `committers`         offset commits on many connections
7. `group_members`      members of consumer groups
"""
