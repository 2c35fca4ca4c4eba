"""The examples of the chapter on Hailstorm: each module has a topology, its records, and a picture of its result.

    trending    the paper's example: the most frequent words of a stream of text, here Python's own documentation
    weather     the rain of a city in windows of four weeks of event time, written exactly once into a database

A module has these names: `topology`, `TOPIC`, `PARTITIONS`, `prepare()`, `records()`, `lines(states)`, `draw(states)`.
"""
