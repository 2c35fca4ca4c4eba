"""A streaming query: at each trigger, how far to read, and which ranges that gives.

Spark keeps the offsets in its checkpoint; after a restart it asks for the range that was planned last again.  So
nothing here is remembered but for comfort: the end that Trigger.AvailableNow goes to, and when a trigger last took
something (minOffsetsPerTrigger waits for a backlog, but no longer than maxTriggerDelay).

A partition that is new is read from its beginning, and one that is gone is left out of the offsets.  Data are lost
where a partition is gone, a new one does not begin at 0, or a log begins behind the offset that is to be read or ends
before it, as it does when its topic was deleted and made anew (tasks.DataLossError).  With failOnDataLoss=false such a
new log is read from its beginning, where the connector would leave out what it has so far.

A topic that was made anew and has already more records than the old one is known by its id while the query runs (the
connector does not notice).  With failOnDataLoss=false the query goes on at its offset, with a warning: to begin again
would be another batch after a crash than before it.  Across a restart nobody notices: a checkpoint has no ids, and
keeps the connector's shape.

Trigger.AvailableNow does not wait for minOffsetsPerTrigger, or some records would stay behind.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from hmb.client.connection import ConnectionFailed
from hmb.client.metadata import Cluster
from hmb.client.offsets import list_offsets
from hmb.protocol.enums import LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition
from hmb.spark import tasks
from hmb.spark.batch import RangePartition, read_partition
from hmb.spark.offsets import Offsets, ends, from_json, partitions_of, patiently, resolve, to_json
from hmb.spark.options import SourceOptions
from hmb.spark.ranges import cut, limited, ranges_between

if TYPE_CHECKING:
    import pyarrow as pa

Shape = dict[str, Any]  # offsets as JSON

log = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in one Python process of the driver as long as the query; its tasks get copies."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._cluster: Cluster | None = None
        self._is_available_now = False
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._took_at = -math.inf  # when a trigger last took something
        self._ids: dict[str, UUID] = {}  # of the topics that are read
        self._latest: Offsets = {}

    def initialOffset(self) -> Shape:
        cluster, options = self._asked(), self._options
        start = resolve(
            cluster,
            options.starting,
            partitions_of(cluster, options),
            tasks.isolation_level(options),
            option="startingOffsets",
            when_late=options.time_strategy,
        )
        return to_json(start)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Shape, limit: ReadLimit) -> Shape:
        before = from_json(start)
        end = self._target
        if end is None:
            self._latest = end = patiently(self._options, lambda: self._ends(before))
        if self._is_available_now:
            self._target = end
        begin = self._begin(before, end)
        backlog = sum(max(0, end[it] - begin[it]) for it in end)
        if self._waits(backlog):
            return start
        if backlog:
            self._took_at = time.monotonic()
        return to_json(limited(begin, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else end)

    def reportLatestOffset(self) -> Shape | None:
        return to_json(self._latest) if self._latest else None

    def prepareForTriggerAvailableNow(self) -> None:
        """The target is settled at the first trigger, when it is known which topics may be gone."""
        self._is_available_now = True

    def partitions(self, start: Shape, end: Shape) -> Sequence[InputPartition]:
        options, until = self._options, from_json(end)
        begin = self._begin(from_json(start), until)
        back = [partition for partition, offset in until.items() if offset < begin[partition]]
        for partition in back:
            what = f"{partition}: the end of the log went from {begin[partition]} back to {until[partition]}"
            tasks.data_loss(options, what)
        begin |= self._first(back)
        wanted = cut(ranges_between(begin, until), options.min_partitions, options.max_records)
        return [RangePartition(each) for each in wanted]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)

    def commit(self, end: Shape) -> None:
        """With commitOffsets=true the group shows how far the query has come; the checkpoint is what counts."""
        if self._options.group is None:
            return
        from hmb.client.admin import Admin

        try:
            with Admin(self._options.bootstrap_servers) as admin:
                answers = admin.alter_group_offsets(self._options.group, from_json(end))
            for partition, error in answers.items():
                if error is not None:
                    log.warning("%s: group %s: %s", partition, self._options.group, error)
        except (ConnectionFailed, KafkaError) as error:  # no reason to end a query
            log.warning("group %s: %s", self._options.group, error)

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}

    def _asked(self) -> Cluster:
        if self._cluster is None:
            self._cluster = tasks.cluster_of(self._options)
        return self._cluster

    def _ends(self, known: Mapping[TopicPartition, int]) -> Offsets:
        cluster = self._asked()
        partitions = partitions_of(cluster, self._options, known=known)
        for topic in sorted({partition.topic for partition in partitions}):
            self._check_id(topic, cluster.topic(topic).topic_id)
        try:
            return list_offsets(cluster, partitions, LATEST, tasks.isolation_level(self._options))
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            # It was there a moment ago: whoever asks has to look again, for what is gone may be left out.
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, error.message) from error

    def _check_id(self, topic: str, topic_id: UUID) -> None:
        """Whether the topic is still the one that was there before; brokers before 2.8 do not tell."""
        before = self._ids.setdefault(topic, topic_id)
        self._ids[topic] = topic_id
        if before != topic_id and NO_TOPIC_ID not in (before, topic_id):
            tasks.data_loss(self._options, f"topic {topic!r} was deleted and made anew while the query ran")

    def _begin(self, before: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
        """Where each partition goes on, new ones from their beginning; says what is lost."""
        gone = sorted(set(before) - set(end))
        if gone:
            tasks.data_loss(self._options, f"{', '.join(map(str, gone))}: not there any more")
        new = sorted(set(end) - set(before))
        first = self._first(new)
        for partition, offset in first.items():
            if offset:
                tasks.data_loss(self._options, f"{partition} is new, and begins at {offset} instead of 0")
        return {**before, **first}

    def _first(self, partitions: list[TopicPartition]) -> Offsets:
        """Where their logs begin."""
        options = self._options
        return patiently(options, lambda: ends(self._asked(), partitions, tasks.isolation_level(options)))[0]

    def _waits(self, backlog: int) -> bool:
        """Whether the backlog is too small to begin, and young enough to wait."""
        least = self._options.min_offsets
        if least is None or self._is_available_now or backlog >= least:
            return False
        return time.monotonic() - self._took_at < self._options.max_trigger_delay
