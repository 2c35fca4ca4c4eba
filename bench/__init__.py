"""Benchmarks: HMB and Apache Kafka, measured on one machine.

A result such as "300,000 records/s" alone says little, because it depends on the machine, on other running
programs, and on the client. HMB's benchmarks therefore follow four rules:
- *Side by side.* HMB and Kafka run on the same machine. Each round measures both, one after the other, and only
  results of the same round are compared. The final result is a ratio such as `1.03 (0.98 .. 1.07)`: HMB's result
  divided by Kafka's result. The first number is the median of all rounds. The numbers in parentheses are the
  smallest and the largest ratio.
- *The same client for both.* A comparison of brokers uses one client, usually Kafka's own performance tool.
- *A run must prove its result.* For example, the run of a producer counts only if the broker's log contains all
  sent records after the run.
- *Every run is kept.* The file of a run contains the machine, the versions and the commit. With this information,
  a reader can check each result and repeat the run.

`hmb bench produce` runs through these modules:
    cli/bench.py                   finds the module of the command
    measurement.scenario           reads the options, and opens the file in which all runs are stored
    peers.chosen                   starts HMB and Kafka 4.3.0, each in a process of its own
    scenarios.produce              warms both brokers up, and measures both with each message size in each round
    load.producers                 runs Kafka's ProducerPerformance and reads the last line of its output
    report.samples, report.view    store each run; make the tables at the end

Read in this order:
1. `measurement`   the code that all benchmarks share: options, rounds, samples; it uses `progress` and `errors`
2. `peers`         the measured brokers, each in a process of its own
3. `load`          the clients and connections that keep a broker busy
4. `scenarios`     the benchmarks, one module for each
5. `report`        samples, tables and charts
6. `logs`          functions that write a large log without a broker
7. `thesis`        a repetition of the two benchmarks in the thesis on which HMB is based
8. `streams`       benchmarks of Hailstorm and other stream processors
9. `testing`       a benchmark of the embedded broker, which runs in the same process as a test
10. `ui`           a benchmark of a broker's web page and metrics
11. `mirror`       a benchmark of a mirror, which copies a topic from one broker to another
12. `share`        a benchmark of a share group, whose members read a topic as a queue
13. `security`     a benchmark of the cost of TLS, of logins and of ACLs
14. `results`      the published samples
"""
