"""A batch query: which ranges its tasks read, settled once when the query is planned."""

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


class RangePartition(InputPartition):
    """A task."""

    def __init__(self, wanted: OffsetRange) -> None:
        self.wanted = wanted


def read_partition(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """A task's work; where there are no ranges, Spark makes a task without one."""
    return tasks.read(options, partition.wanted) if isinstance(partition, RangePartition) else iter(())


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options, level = self._options, tasks.isolation_level(self._options)
        with closing(tasks.cluster_of(options)) as cluster:
            partitions = partitions_of(cluster, options)
            # The connector, too, takes the end where no record is as young as an ending time.
            end = resolve(cluster, options.ending, partitions, level, option="endingOffsets", when_late="latest")
            start = resolve(
                cluster, options.starting, partitions, level, option="startingOffsets", when_late=options.time_strategy
            )
        for partition, offset in start.items():
            if offset > end[partition]:
                what = f"{partition} is to be read from offset {offset}, and ends before {end[partition]}"
                tasks.data_loss(options, what)
        wanted = cut(ranges_between(start, end), options.min_partitions, options.max_records)
        return [RangePartition(each) for each in wanted]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)
