"""The data source `hmb`, with which Spark reads and writes topics. It is written in plain Python.

Problem: Spark's own Kafka connector is a Java library. Before its first query, a Spark session must load the jar file
of this library, in the version that matches Spark.

Idea: a data source for PySpark 4 can be written in Python (the Python Data Source API, SPARK-44076). The code
in this folder is such a data source. Its name is `hmb`. It has the same options, columns and errors as Spark's
Kafka connector, but it needs no jar file. It can read from HMB and Apache Kafka, and write to both of them.

When a query reads a topic, Spark's driver asks the data source (module `source`) for a reader. The reader
asks the brokers for offsets, and divides the offsets into ranges. Spark then runs one task for each range,
in a worker process. The task reads its range with `hmb.Consumer`, and returns Arrow columns.

To write, Spark passes Arrow columns to each task. The task sends their rows as records with `hmb.Producer`.

Example: a topic has two partitions, with 100 records in partition 0 and 50 records in partition 1. A batch query has
two tasks, for the ranges `weather-0 [0, 100)` and `weather-1 [0, 50)`. If the option `maxRecordsPerPartition` is 50,
the first range is divided into two ranges, and the query has three tasks.

Read in this order:
    source        the data source: Spark calls it for `format("hmb")`
    option_names  the table of all options
    options       parses and checks the options
    kafka_names   the names of settings that only Kafka's Java clients have
    bounds        parses the options that set the start and the end of a query
    offsets       converts the start and the end of a query to one offset for each partition
    ranges        divides the offsets into ranges, one for each task
    filters       finds the ranges of offsets that can match the filters of a batch query
    batch         reads topics in a batch query
    stream        reads topics in a streaming query
    tasks         reads the range of one task, and returns Arrow columns
    writing/      writes records to topics: at least once, or exactly once
    local/        finds what Spark needs on this machine, and starts a session
    metrics       measures the lag of a streaming query
    loads         `hmb spark load`: loads a topic into Parquet files, each record exactly once

The folder `local` and the modules `metrics` and `loads` make Spark easier to use. The data source does not need them,
so skip them in a first reading.

PySpark imports each top-level module whose name starts with `pyspark_`. If such a module has a class `DefaultSource`,
PySpark registers this class as a data source. For the data source `hmb`, this module is `pyspark_hmb`.
"""

from importlib import import_module

__all__ = ["LagListener", "lag", "load", "session"]
_MODULES = {"LagListener": "metrics", "lag": "metrics", "load": "loads", "session": "local.sessions"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'hmb.spark' has no attribute {name!r}")
    return getattr(import_module(f"hmb.spark.{_MODULES[name]}"), name)
