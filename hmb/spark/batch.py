"""Reads topics in a batch query. The reader makes the list of tasks once, and each task reads one range of offsets.

When Spark plans the query, the reader chooses a range of offsets for each partition. By default, the range
begins at the current log start offset, and ends before the current log end offset. The query does not read
records that producers write after the planning.

If Spark passes filters to the reader, the tasks read fewer offsets (module `filters`). For example, with the
filter `offset <= 100`, no task reads an offset above 100.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from hmb.spark import tasks
from hmb.spark.offsets import partitions_of, resolve
from hmb.spark.options import SourceOptions
from hmb.spark.ranges import OffsetRange, cut, ranges_between

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter


class RangePartition(InputPartition):
    """The description of one task. A worker process of Spark gets this object, and reads the range of offsets."""

    def __init__(self, offsets: OffsetRange) -> None:
        self.offsets = offsets


def read_partition(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Return the records that one task reads: the records in one range of offsets of one partition.

    If a query has no offsets to read, Spark still creates one task, which has no range. For this task, the function
    returns no records.
    """
    return tasks.read(options, partition.offsets) if isinstance(partition, RangePartition) else iter(())


class BatchReader(DataSourceReader):
    """The reader of one batch query. Spark's driver calls `partitions`, and Spark's workers call `read`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        options, level = self._options, tasks.isolation_level(self._options)
        with closing(tasks.cluster_of(options)) as cluster:
            partitions = partitions_of(cluster, options)
            # If a partition has no record at or after the ending time, the query reads the partition to its end.
            # Spark's Kafka connector does the same.
            end = resolve(cluster, options.ending, partitions, level, side="ending", if_no_record="latest")
            strategy = options.time_strategy
            start = resolve(cluster, options.starting, partitions, level, side="starting", if_no_record=strategy)
        for partition, offset in start.items():
            if offset > end[partition]:
                problem = f"cannot read {partition} from offset {offset}: the log ends at {end[partition]}"
                tasks.data_loss(options, problem)
        ranges = ranges_between(start, end)
        if self._filters:
            ranges = self._narrowed(ranges, level)
        return [RangePartition(each) for each in cut(ranges, options.min_partitions, options.max_records)]

    def _narrowed(self, ranges: list[OffsetRange], level: int) -> list[OffsetRange]:
        # Only a query with pushed-down filters needs the module `filters`. So other queries do not load it.
        from hmb.spark.filters import narrowed

        with closing(tasks.cluster_of(self._options)) as cluster:
            return narrowed(cluster, ranges, self._filters, level, self._options.max_lateness)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)


class FilteringReader(BatchReader):
    """The reader of a batch query with the option `pushFilters=true`.

    Spark passes the filters of the query to the method `pushFilters`. If the setting
    `spark.sql.python.filterPushdown.enabled` is not true, Spark raises an error for a reader that overrides
    this method. The class `BatchReader` does not override the method, so it works without the setting.
    """

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        """Store the filters, and return all of them, so that Spark also applies all of them to the rows.

        The reader uses the filters only to read fewer records. It can still return rows that do not match the filters,
        so Spark must remove these rows.
        """
        self._filters = filters
        return filters
