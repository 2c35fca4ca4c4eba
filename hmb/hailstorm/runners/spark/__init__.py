"""The Spark runner: runs a topology of Hailstorm as queries of Spark's Structured Streaming.

Problem: a topology that is too large for one machine needs a cluster. The cluster must start processes and move data
between machines.

Idea: Spark already starts processes on a cluster, and moves data between them. `on_spark` translates each node of a
topology into a step of a Spark query. Hailstorm's own snapshots are then not needed, because Spark stores the progress
and the states in its checkpoint. Hailstorm's negotiator, which starts the snapshots, is not needed either, because the
driver of Spark controls the query. The user's functions do not change.

Example: the topology words -> split -> count becomes one query: `readStream.format("hmb")` reads the topic "words",
`mapInPandas` runs `split`, and `transformWithStateInPandas` runs `count` with one state for each instance.

Read in this order:
    query  translates a topology into queries of Spark, and starts the queries
    state  a class for bolts (the steps that process tuples) with a state, for example a count; Spark calls its methods
"""
