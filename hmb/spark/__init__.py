"""Spark reads and writes topics: `spark.read / readStream / write / writeStream.format("hmb")`, in plain Python.

It is a data source of PySpark's own kind (its Python Data Source API, SPARK-44076), with the options, columns and
errors of Spark's Kafka connector, against HMB and any Kafka, and it needs no jar.

    options   every option, its name, its meaning, and which exclude each other
    offsets   where to begin and to stop: words, JSON, times -> an offset for each partition
    ranges    offset ranges -> tasks, and how much a trigger may take
    batch     a batch query: its tasks
    stream    a streaming query: offsets from trigger to trigger
    tasks     what a worker does: one range, read as Arrow columns
    sink      rows -> records, at least once or exactly once
    rows, sending, once    its parts: what rows may be, how they go, how they go once
    source    the data source, made of the above
    environment            the Python packages and the Java that it takes
    sessions  a local Spark that just works
    doctor    what is missing when it does not
    loads     topic -> Parquet, with the offsets in the same commit (Kafka 0.7's batch loads)

PySpark registers every data source that a top-level module named `pyspark_*` calls `DefaultSource`: ours is in
`pyspark_hmb`.
"""

from importlib import import_module

__all__ = ["load", "session"]
_MODULES = {"load": "loads", "session": "sessions"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'hmb.spark' has no attribute {name!r}")
    return getattr(import_module(f"hmb.spark.{_MODULES[name]}"), name)
