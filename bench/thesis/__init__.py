"""The two benchmarks of the thesis on which HMB is based, repeated with an old and a new release of Kafka.

The thesis of 2015 describes a broker and a producer for Kafka's protocol, written in Haskell. Its chapter 10 compares
both programs with Apache Kafka 0.8.2.0.

The first benchmark measures five batch sizes with messages of 100 B. The second benchmark measures five
message sizes with a batch size of 12,800 B. Together, the two benchmarks have ten combinations of a message
size and a batch size, called *cells*. Each cell is measured in four *scenarios*. A scenario is a producer
and a broker:
    1   Kafka's producer -> Kafka's broker    the reference
    2   Kafka's producer -> HMB's broker
    3   HMB's producer   -> Kafka's broker
    4   HMB's producer   -> HMB's broker

Only in this folder, a *scenario* is a producer and a broker. Elsewhere in this project, it is a benchmark
(`hmb.bench.scenarios`). The class `Pair` (suite.py) contains a producer, a broker and the scenario's number.

Read in this order:
1. `cells`    ten combinations of a message size and a batch size, with the rates that the thesis measured
2. `suite`    the command `hmb bench thesis`, which measures pairs of a producer and a broker
3. `tables`   tables of the measured rates and the thesis's rates; tables of costs and goals
4. `charts`   the two charts of the thesis, with the thesis's rates and with the rates of this benchmark
"""
