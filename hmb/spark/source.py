"""The data source `hmb`: what Spark finds under `format("hmb")`."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from hmb.spark import sink, tasks
from hmb.spark.batch import BatchReader
from hmb.spark.options import OptionError, sink_options, source_options, wants_headers
from hmb.spark.stream import StreamReader


class HmbDataSource(DataSource):
    """Topics as tables, at rest and in motion."""

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
        """Refuses a schema of the user's own; the connector does so, too."""
        fixed = self.schema()
        if schema.simpleString() != fixed.simpleString():
            raise OptionError(f"topics have columns of their own, leave out schema(): {fixed.simpleString()}")
