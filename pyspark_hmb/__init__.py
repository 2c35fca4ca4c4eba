"""PySpark imports every top-level module named `pyspark_*` and registers its `DefaultSource`; see `hmb.spark`."""

from hmb.spark.source import HmbDataSource as DefaultSource

__all__ = ["DefaultSource"]
