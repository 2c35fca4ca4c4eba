"""The Spark runner: runs a topology of Hailstorm as queries of Spark's Structured Streaming.

Problem: a topology that is too large for one machine needs a cluster. The cluster must start processes and move data
between machines.

Idea: Spark already starts processes on a cluster, and moves data between them. `on_spark` translates each node of a
topology into a step of a query. Spark's checkpoint replaces Hailstorm's snapshots, and Spark's driver replaces the
negotiator. The user's functions do not change.

Example: the topology words -> split -> count becomes one query: `readStream.format("hmb")` reads the topic "words",
`mapInPandas` runs `split`, and `transformWithStateInPandas` runs `count` with one state for each instance.

Read in this order:
    query  translates a topology, and starts the queries
    state  a bolt with a state, as the class that Spark's workers run
"""
