"""The thesis's two benchmarks, repeated with the Kafka of its time and the Kafka of today.

HMB goes back to a thesis of 2015, which built a broker and a producer for Kafka's protocol in Haskell. Its chapter 10
compares them with Apache Kafka 0.8.2.0: messages of one size in batches of five sizes, and messages of five sizes in
batches of one size. Each of these ten *cells* has four *scenarios*, and a scenario is a pair of producer and broker::

    1   Kafka's producer -> Kafka's broker    the reference
    2   Kafka's producer -> HMB's broker
    3   HMB's producer   -> Kafka's broker
    4   HMB's producer   -> HMB's broker

The other benchmarks of this project are called scenarios, too (`hmb.bench.scenarios`). The code in this folder calls
the thesis's scenarios pairs.

Read in this order:

1. `cells`    the ten cells, and what the thesis measured in them
2. `suite`    the command `hmb bench thesis`: all pairs alternately
3. `tables`   rates and ratios, compared with the thesis's own; costs and goals
4. `charts`   the thesis's two charts, and the same charts of the repetition
"""
