"""Spark reads and writes topics: `spark.read / readStream / write / writeStream.format("hmb")`, in plain Python.

Problem: Spark's own Kafka connector is a Java library. A Spark session has to load its jar in the right version before
the first query.

Idea: PySpark 4 accepts data sources that are written in Python (the Python Data Source API, SPARK-44076). This folder
is one of them. The data source `hmb` has the options, columns and errors of Spark's Kafka connector. The data source
works with HMB and with Apache Kafka, and needs no jar.

Spark's driver plans each query: `source` creates a reader, the reader asks the brokers for offsets, and cuts the
offsets into ranges. Spark runs one task for each range. A worker reads the range with `hmb.Consumer` and returns Arrow
columns. Writing works in the opposite direction: a task receives Arrow columns and sends them with `hmb.Producer`.

Example: a topic has two partitions, with 100 records in partition 0 and 50 records in partition 1. A batch query reads
the ranges `weather-0 [0, 100)` and `weather-1 [0, 50)` in two tasks. With `maxRecordsPerPartition=50` the first range
is cut in two, and the query has three tasks.

Read in this order:

    source        the data source: Spark calls it for `format("hmb")`
    option_names  the table of all options
    options       parses and checks the options
    bounds        parses the options that say where a query starts and ends
    offsets       turns these bounds into one offset for each partition
    ranges        cuts offset ranges into tasks, and limits how much one trigger reads
    batch         the reader of a batch query
    stream        the reader of a streaming query: offsets from trigger to trigger
    tasks         the work of one task: reads a range as Arrow columns
    writing/      the writers: at least once, or exactly once
    local/        finds what Spark needs on this machine, and starts a session
    loads         `hmb spark load`: loads a topic into Parquet files, each record once

The folder `local` and the module `loads` only make Spark easier to use. Skip them in a first reading.

PySpark finds data sources by name: it imports every top-level module that is named `pyspark_*`, and registers the class
`DefaultSource` of that module. The module of this data source is `pyspark_hmb`.
"""

from importlib import import_module

__all__ = ["load", "session"]
_MODULES = {"load": "loads", "session": "local.sessions"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'hmb.spark' has no attribute {name!r}")
    return getattr(import_module(f"hmb.spark.{_MODULES[name]}"), name)
