"""The Spark runner: runs a topology of Hailstorm as queries of Spark's Structured Streaming.

Problem: a topology that is too large for one machine needs a cluster. The cluster must start processes and move data
between machines.

Idea: Spark already starts processes on a cluster, and moves data between them. `on_spark` translates each
node of a topology into a step of a Spark query. A user can run the same functions with and without Spark.

Spark replaces two parts of Hailstorm. Spark's checkpoint stores the progress and the states, so it replaces
the snapshots. Spark's driver controls the query, so it replaces the negotiator, which starts the snapshots.

The topology words -> split -> count -> out has one sink, so it becomes one query with four parts:
    words    readStream.format("hmb")      reads the topic
    split    mapInPandas                   runs the bolt
    count    transformWithStateInPandas    runs the bolt, stores its state
    out      foreachBatch                  calls the sink's function

`on_spark` starts one query for each sink, so a topology with two sinks becomes two queries. `on_spark` raises
TopologyError if a sink is a `HeldBackSink` or a `TransactionalSink`. These sinks keep outputs until a snapshot is
complete, and Spark's checkpoint cannot store these outputs.

Read in this order:
    query  translates a topology into queries of Spark, and starts the queries
    state  runs stateful bolts on Spark, for example a bolt that keeps a count for each word
"""
