"""Benchmarks: HMB and Apache Kafka, measured on one machine.

A number such as "300,000 records/s" alone means little. It depends on the machine, on the other running programs, and
on the client. HMB's benchmarks therefore follow four rules:

- *Side by side.* HMB and its peer run on the same machine, and their runs alternate. Only runs of the same round are
  compared. The result is a ratio, for example `1.03 (0.98 .. 1.07)`: the median of the rounds, and their range.
- *The same client for both.* A comparison of brokers uses one client, usually Kafka's own performance tool.
- *A run must prove its result.* A producer's run counts only if the end offset of the broker's log is then the number
  of sent records.
- *Every run is kept*, with the machine, the versions and the commit, so that a reader can check and repeat each figure.

`hmb bench produce` runs through these modules:

    cli/bench.py                   finds the module of the command
    measurement.scenario           reads the options, opens the file of samples
    peers.chosen                   starts HMB and Kafka 4.3.0, each a process
    scenarios.produce              warms both up, then runs cell after cell, round after round
    load.producers                 runs Kafka's ProducerPerformance and reads its last line
    report.samples, report.view    keep each run; make the tables at the end

Read in this order:

1. `measurement`   the shared part of all scenarios: options, rounds, samples; `progress` and `errors` are small helpers
2. `peers`         the brokers, as processes
3. `load`          the clients and connections that keep a broker busy
4. `scenarios`     the benchmarks, one module for each
5. `report`        samples, tables and charts
6. `logs`          logs that a benchmark writes itself
7. `thesis`        the thesis's benchmarks, repeated
8. `streams`       Hailstorm and other stream processors
9. `testing`       the embedded broker in tests, which runs in the process of the benchmark
10. `results`      the published samples
"""
