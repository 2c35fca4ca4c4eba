"""Register the data source `hmb` in PySpark. The code of the data source is in `hmb.spark`.

PySpark imports every top-level module whose name starts with `pyspark_`. It registers the class `DefaultSource` of this
module as a data source.
"""

from hmb.spark.source import HmbDataSource as DefaultSource

__all__ = ["DefaultSource"]
