"""The examples in the documentation of Hailstorm. A module contains a topology, its input, and a drawing of its result.

This folder contains two example topologies of Hailstorm:
    trending    the most frequent words of a stream of text (the example of the Hailstorm paper)
    weather     the rain of a city in windows of four weeks, written to a database exactly once

Each module with an example topology defines these names, which `hmb hailstorm demo` uses:
    topology            the topology
    TOPIC, PARTITIONS   the topic with the input, and the number of its partitions
    records()           yields the key, the value and the timestamp of each record of the input
    prepare()           prepares a run, for example deletes the database of an earlier run
    lines(states)       returns the result as lines of text; `states` contains the states after the run
    draw(states)        returns a picture of the result
"""
