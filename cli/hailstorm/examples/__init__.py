"""The examples of the chapter on Hailstorm: each module has a topology, its records, and a picture of its result.

    trending    the paper's example: the most frequent words of a stream of text, here Python's own documentation
    weather     rain in two cities, in windows of four weeks of event time, written exactly once into a database
"""
