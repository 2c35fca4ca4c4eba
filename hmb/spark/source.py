"""The data source `hmb`: the class that Spark uses for `format("hmb")`.

Spark calls `reader` for a batch query and `streamReader` for a streaming query. For queries that write, Spark calls
`writer` and `streamWriter`. Each method parses the options and creates an object of the other modules.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from hmb.spark import tasks
from hmb.spark.batch import BatchReader
from hmb.spark.options import OptionError, sink_options, source_options, wants_headers
from hmb.spark.stream import StreamReader
from hmb.spark.writing import sink


class HmbDataSource(DataSource):
    """A source and sink for Spark: topics are tables for batch queries and for streaming queries."""

    @classmethod
    def name(cls) -> str:
        return "hmb"

    def schema(self) -> StructType:
        return tasks.schema(include_headers=wants_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        self._check(schema)
        return BatchReader(source_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        self._check(schema)
        return StreamReader(source_options(self.options, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> sink.BatchWriter:
        return sink.batch_writer(sink_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> sink.StreamWriter:
        return sink.stream_writer(sink_options(self.options), schema, overwrite)

    def _check(self, schema: StructType) -> None:
        """Raise OptionError if the user has set a schema. The connector refuses it, too."""
        fixed = self.schema()
        if schema.simpleString() != fixed.simpleString():
            raise OptionError(f"the columns of a topic are fixed, remove the call of schema(): {fixed.simpleString()}")
