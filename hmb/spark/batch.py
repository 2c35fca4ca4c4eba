"""A batch query: Spark's driver asks for the query's tasks once, and each task reads one range of offsets.

The reader asks the brokers for the start and the end of each partition when Spark plans the query. Records that are
written after that moment are not part of the query.
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


class RangePartition(InputPartition):
    """A task of a query: Spark sends it to a worker, which reads the range."""

    def __init__(self, offsets: OffsetRange) -> None:
        self.offsets = offsets


def read_partition(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Read the records of one task. Return none for the empty task that Spark creates if a query has no ranges."""
    return tasks.read(options, partition.offsets) if isinstance(partition, RangePartition) else iter(())


class BatchReader(DataSourceReader):
    """The reader of one batch query. Spark calls `partitions` on the driver and `read` in the workers."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options, level = self._options, tasks.isolation_level(self._options)
        with closing(tasks.cluster_of(options)) as cluster:
            partitions = partitions_of(cluster, options)
            # If no record has the ending time or a later one, the query reads up to the end of the log, as Spark's
            # Kafka connector does.
            end = resolve(cluster, options.ending, partitions, level, option="endingOffsets", if_no_record="latest")
            strategy = options.time_strategy
            start = resolve(
                cluster, options.starting, partitions, level, option="startingOffsets", if_no_record=strategy
            )
        for partition, offset in start.items():
            if offset > end[partition]:
                problem = f"cannot read {partition} from offset {offset}: the log ends at {end[partition]}"
                tasks.data_loss(options, problem)
        ranges = cut(ranges_between(start, end), options.min_partitions, options.max_records)
        return [RangePartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)
