"""Makes Spark find the data source `hmb`. The data source itself is in `hmb.spark`.

PySpark imports every top-level module whose name starts with `pyspark_`, and registers the class `DefaultSource` of it.
"""

from hmb.spark.source import HmbDataSource as DefaultSource

__all__ = ["DefaultSource"]
