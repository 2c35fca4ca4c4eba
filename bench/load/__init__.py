"""Load: the programs and connections that keep a broker busy during a benchmark.

If the client of a benchmark is slower than the broker, the benchmark measures the client. Different benchmarks
therefore use different kinds of load:
- *Performance clients* produce or consume as fast as they can and print one line of figures. Most benchmarks use the
  tools of Kafka. HMB's performance clients have the same options and print the same line.
- *Client libraries* for Python are compared by the benchmark `clients`. The libraries run one after another with the
  same settings.
- *Prepared requests* are the same bytes, which one thread sends again and again on many connections. The thread needs
  little CPU time, so the broker can use the rest of the machine to serve 1,000 connections.

Read in this order:
1. `workload`           the number of messages, their size, and the size of a batch
2. `producers`          run the producers of Kafka 4.3.0, Kafka 0.8.2.2 and HMB; `perf_producer` is HMB's program
3. `consumers`          run the consumers of Kafka 4.3.0 and HMB; `perf_consumer` is HMB's program
4. `exit_code`          ends a load program with exit code 1 after an error, and prints the error as one line
5. `library_client`     one client library for Python, in a process of its own
6. `repeated_requests`  the same request on many connections
7. `committers`         offset commits on many connections
8. `group_members`      members of consumer groups
9. `share_member`       a member of a share group, in a process of its own
10. `chromium`          a browser that shows the page of a broker
"""
