"""Register the data source `hmb` in PySpark. The code of the data source is in `hmb.spark`.

PySpark imports every top-level module whose name starts with `pyspark_`. It registers the class `DefaultSource` of this
module as a data source. For this, PySpark runs the first `python3` on the PATH, or the program in PYSPARK_PYTHON.

If such a module raises an exception, PySpark ignores all of them, and reports only that it does not know the format
`hmb`. If `hmb.spark` cannot be imported, for example because pyarrow is missing, this module therefore registers the
class `BrokenSource`. Each query then fails with the reason.
"""

from __future__ import annotations

from pyspark import __version__
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

DefaultSource: type[DataSource]
try:
    from hmb.spark.source import HmbDataSource as DefaultSource
except ImportError as error:
    REASON = f"the data source hmb cannot be loaded with PySpark {__version__}: {error}; see `hmb spark doctor`"

    class BrokenSource(DataSource):
        """A data source with the name `hmb` whose queries fail with the reason why `hmb.spark` cannot be imported."""

        @classmethod
        def name(cls) -> str:
            return "hmb"

        def schema(self) -> StructType:
            raise ImportError(REASON)

        def reader(self, schema: StructType) -> DataSourceReader:
            raise ImportError(REASON)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            raise ImportError(REASON)

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            raise ImportError(REASON)

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
            raise ImportError(REASON)

    DefaultSource = BrokenSource

__all__ = ["DefaultSource"]
