"""The examples in the documentation of Hailstorm. A module contains a topology, its input, and a drawing of its result.

This folder contains two example topologies of Hailstorm:
    trending    the most frequent words of a stream of text (the example of the Hailstorm paper)
    weather     the rain of a city in windows of four weeks, written to a database exactly once

Each module with an example topology defines these names: `topology`, `TOPIC`, `PARTITIONS`, `prepare()`, `records()`,
`lines(states)` and `draw(states)`.
"""
