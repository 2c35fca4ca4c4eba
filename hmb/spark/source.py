"""The data source `hmb`: what Spark finds under `format("hmb")`."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from hmb.spark import tasks
from hmb.spark.batch import BatchReader
from hmb.spark.options import source_options, wants_headers
from hmb.spark.stream import StreamReader


class HmbDataSource(DataSource):
    """Topics as tables, at rest and in motion."""

    @classmethod
    def name(cls) -> str:
        return "hmb"

    def schema(self) -> str:
        return tasks.schema(include_headers=wants_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(source_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(source_options(self.options, streaming=True))
