"""The data source `hmb`: the class that Spark uses for `format("hmb")`.

For a query that reads, Spark calls `reader` (batch) or `streamReader` (streaming). For a query that writes, Spark calls
`writer` or `streamWriter`. Each of these methods parses the options, and returns a reader or a writer from another
module.

Spark calls `schema` first, when the user's program calls `load()`. If an option is wrong, `schema` raises the
error. The traceback then shows the line of the program with the wrong option. At this time, Spark does not know
yet whether the query is a batch query or a streaming query. So `schema` must accept options that only a batch
query may have, for example `endingOffsets`. If a streaming query has such an option, Spark reports the error
when the query starts.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from hmb.spark import tasks
from hmb.spark.batch import BatchReader, FilteringReader
from hmb.spark.options import OptionError, loaded_options, sink_options, source_options
from hmb.spark.stream import RefusedReader, StreamReader
from hmb.spark.writing import sink


class HmbDataSource(DataSource):
    """The data source `hmb`. Batch queries and streaming queries use it to read and to write topics."""

    @classmethod
    def name(cls) -> str:
        return "hmb"

    def schema(self) -> StructType:
        return tasks.schema(loaded_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        self._check(schema)
        options = source_options(self.options, streaming=False)
        return FilteringReader(options) if options.push_filters else BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            self._check(schema)
            return StreamReader(source_options(self.options, streaming=True))
        except OptionError as error:
            return RefusedReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> sink.BatchWriter:
        return sink.batch_writer(sink_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> sink.StreamWriter:
        return sink.stream_writer(sink_options(self.options), schema, overwrite)

    def _check(self, schema: StructType) -> None:
        """Raise OptionError if the user has set a schema, because the columns of a topic are always the same."""
        fixed = self.schema()
        if schema.simpleString() != fixed.simpleString():
            raise OptionError(f"the columns of a topic are fixed: {fixed.simpleString()}. Remove the call of schema()")
