"""A streaming query: at each trigger, how far to read, and which ranges that gives.

Spark keeps the offsets in its checkpoint; after a restart it asks for the range that was planned last again.  So
nothing here is remembered but for comfort: the end that Trigger.AvailableNow goes to, and when a trigger last took
something (minOffsetsPerTrigger waits for a backlog, but no longer than maxTriggerDelay).

A partition that is new is read from its beginning.  One whose log begins behind the offset that is to be read, or ends
before it, has lost data (tasks.DataLossError).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from hmb.client.metadata import Cluster, TopicPartition
from hmb.client.offsets import EARLIEST, LATEST, list_offsets
from hmb.spark import tasks
from hmb.spark.batch import RangePartition, cluster_of, isolation_level, read_partition
from hmb.spark.offsets import Offsets, from_json, partitions_of, resolve, to_json
from hmb.spark.options import SourceOptions
from hmb.spark.ranges import cut, limited, ranges_between

if TYPE_CHECKING:
    import pyarrow as pa

Shape = dict[str, Any]  # offsets as JSON


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in one Python process of the driver as long as the query; its tasks get copies."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._cluster: Cluster | None = None
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._took_at = time.monotonic()  # when a trigger last took something
        self._latest: Offsets = {}

    def initialOffset(self) -> Shape:
        options, cluster = self._options, self._asked()
        partitions = partitions_of(cluster, options)
        start = resolve(
            cluster,
            options.starting,
            partitions,
            isolation_level(options),
            option="startingOffsets",
            when_late=options.time_strategy,
        )
        return to_json(start)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Shape, limit: ReadLimit) -> Shape:
        before = from_json(start)
        end = self._ends() if self._target is None else self._target
        begin = self._begin(before, end)
        self._latest = end
        end = {**{it: offset for it, offset in before.items() if it not in end}, **end}
        backlog = sum(max(0, end[it] - begin.get(it, end[it])) for it in end)
        if self._waits(backlog):
            return start
        if isinstance(limit, ReadMaxRows):
            end = limited({it: begin.get(it, offset) for it, offset in end.items()}, end, limit.max_rows)
        if backlog:
            self._took_at = time.monotonic()
        return to_json(end)

    def reportLatestOffset(self) -> Shape | None:
        return to_json(self._latest) if self._latest else None

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends()

    def partitions(self, start: Shape, end: Shape) -> Sequence[InputPartition]:
        options = self._options
        until = from_json(end)
        begin = self._begin(from_json(start), until)
        for partition, offset in until.items():
            if offset < begin[partition]:
                what = f"{partition}: the offset went from {begin[partition]} back to {offset}"
                tasks.data_loss(options, what)
        wanted = cut(ranges_between(begin, until), options.min_partitions, options.max_records)
        return [RangePartition(each) for each in wanted]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)

    def commit(self, end: Shape) -> None:
        """With commitOffsets=true the group shows how far the query has come; the checkpoint is what counts."""
        if self._options.group is None:
            return
        from hmb.client.admin import Admin

        with Admin(self._options.bootstrap_servers) as admin:
            admin.alter_group_offsets(self._options.group, from_json(end))

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}

    def _asked(self) -> Cluster:
        if self._cluster is None:
            self._cluster = cluster_of(self._options)
        return self._cluster

    def _ends(self) -> Offsets:
        cluster = self._asked()
        partitions = partitions_of(cluster, self._options)
        return list_offsets(cluster, partitions, LATEST, isolation_level(self._options))

    def _begin(self, before: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
        """Where each partition goes on, new ones from their beginning; says which ones are gone."""
        gone = sorted(set(before) - set(end))
        if gone:
            tasks.data_loss(self._options, f"{', '.join(map(str, gone))}: not there any more")
        new = sorted(set(end) - set(before))
        return {**before, **list_offsets(self._asked(), new, EARLIEST)} if new else dict(before)

    def _waits(self, backlog: int) -> bool:
        """Whether the backlog is too small to begin, and young enough to wait."""
        least = self._options.min_offsets
        if least is None or self._target is not None or backlog >= least:
            return False
        return time.monotonic() - self._took_at < self._options.max_trigger_delay
