"""Read topics in a streaming query: at each trigger, the reader decides how far to read, and creates the tasks.

Spark stores the offsets of a query in its checkpoint. For each batch, Spark calls these methods of the reader,
in this order:
    latestOffset(start, limit)  returns the end offsets of the batch; `start` contains the start offsets
    partitions(start, end)      divides the batch into ranges of offsets, and returns one task for each range; Spark
                                has already stored `end` in its checkpoint
    read(partition)             reads the records of one range, in a worker process
    commit(end)                 commits `end` to a consumer group if commitOffsets is true; Spark calls this method
                                after all tasks of the batch, when the next batch begins

Example: the checkpoint of a query contains `{"weather": {"0": 23}}`, and the log end offset of partition 0 is 45. The
next batch reads the offsets 23 to 44. After a crash during this batch, Spark calls `partitions` with the same start and
end again.

Spark stores the offsets that the query has read, so the reader itself stores little:
- With Trigger.AvailableNow, it stores the offsets at which the query ends.
- It stores the topic ids. They show whether a topic was deleted and created again.
- For the option minOffsetsPerTrigger, it stores the time at which the newest batch began. If the topics
  have fewer unread offsets than minOffsetsPerTrigger, the reader waits. When maxTriggerDelay has passed
  since the stored time, it reads these offsets anyway.

A streaming query reads a new partition from the start of its log, and stops reading a deleted partition.

The following cases are data loss, because the query may miss records. By default, the query then fails with
DataLossError (module `tasks`):
- A partition was deleted.
- The log of a new partition does not start at offset 0.
- The next offset of the query is below the log start offset, because records were deleted.
- The next offset of the query is above the log end offset, because the topic was deleted and created again.
- The topic id changes while the query runs, because the topic was deleted and created again.

With failOnDataLoss=false, the query continues after a data loss. For example, it has read the offsets 0 to 99
of a topic. The topic is deleted and created again, and now has only the offsets 0 to 9. The next offset, 100, is
above the log end offset, so the query continues at offset 0. Spark's Kafka connector would skip these 10 records.

A topic that is deleted and created again can soon have more records than the old topic had. The log end
offset then does not show that the topic is new. The reader therefore compares topic ids, because the new
topic has a new id.

While a query runs, the reader checks topic ids. If the id of a topic changes and failOnDataLoss is false, the
query logs a warning, and continues at the same offset. Spark's Kafka connector does not check topic ids.

For example, a query has read the offsets 0 to 99 of a topic. The topic is deleted and created again, and soon
has 150 records. With failOnDataLoss=false, the query continues at offset 100 of the new topic. The query never
reads the offsets 0 to 99 of the new topic.

After a crash, Spark repeats a batch with the offsets in the checkpoint, for example 100 to 149. The repeated
batch must contain the same records as the first run. So the first run must also begin at offset 100, even if
the topic was deleted and created again.

If the topic is deleted and created again while the query is stopped, the reader does not notice the change. The
checkpoint contains no topic ids, because it has the same form as a checkpoint of Spark's Kafka connector.

With Trigger.AvailableNow, a query ends when a trigger reads no records. A trigger that waits for
minOffsetsPerTrigger reads none, so the query ignores this option. For example, the option is 100, and only
40 records are available. The query reads the 40 records without waiting, and ends.
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
from hmb.spark.offsets import Offsets, TopicDeleted, ends, from_json, partitions_of, resolve, retrying, to_json
from hmb.spark.options import OptionError, SourceOptions
from hmb.spark.ranges import cut, limited, ranges_between

if TYPE_CHECKING:
    import pyarrow as pa

Shape = dict[str, Any]  # the offsets of a checkpoint: {topic: {partition number: offset}}

LOGGER = logging.getLogger(__name__)


class RefusedReader(DataSourceStreamReader):
    """A reader for a streaming query with wrong options. The methods of this reader raise OptionError.

    If the method `streamReader` raised OptionError, Spark would report an UnboundLocalError of PySpark instead.
    So `streamReader` returns this reader.
    """

    def __init__(self, error: OptionError) -> None:
        self._error = error

    def initialOffset(self) -> Shape:
        raise self._error

    def latestOffset(self, start: Shape, limit: ReadLimit) -> Shape:
        raise self._error

    def partitions(self, start: Shape, end: Shape) -> Sequence[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._error


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of one streaming query. This object is in a process of Spark's driver, and each task gets a copy."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._cluster: Cluster | None = None
        self._is_available_now = False
        self._target: Offsets | None = None  # the offsets at which Trigger.AvailableNow stops
        self._last_batch_at = -math.inf  # the monotonic time (s) at which a trigger last found records to read
        self._ids: dict[str, UUID] = {}  # topic name -> topic id
        self._latest: Offsets = {}  # the log end offsets at the newest trigger

    def initialOffset(self) -> Shape:
        cluster, options = self._open_cluster(), self._options
        start = resolve(
            cluster,
            options.starting,
            partitions_of(cluster, options),
            tasks.isolation_level(options),
            side="starting",
            if_no_record=options.time_strategy,
        )
        return to_json(start)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Shape, limit: ReadLimit) -> Shape:
        before = from_json(start)
        end = self._target
        if end is None:
            self._latest = end = retrying(self._options, lambda: self._ends(before))
        if self._is_available_now:
            self._target = end
        begin = self._begin(before, end)
        backlog = sum(max(0, end[it] - begin[it]) for it in end)
        if self._waits(backlog):
            return start
        if backlog:
            self._last_batch_at = time.monotonic()
        elif self._is_available_now:
            # The query ends here, because it has read all records. Spark calls `commit` only when a further batch
            # begins. So the reader calls `commit` for the last batch itself.
            self.commit(start)
        return to_json(limited(begin, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else end)

    def reportLatestOffset(self) -> Shape | None:
        return to_json(self._latest) if self._latest else None

    def prepareForTriggerAvailableNow(self) -> None:
        """Make the query end when it has read all records that are available now.

        With Trigger.AvailableNow, Spark calls this method before the first batch. The method only sets a flag. The
        first call of `latestOffset` then finds the offsets at which the query ends.
        """
        self._is_available_now = True

    def partitions(self, start: Shape, end: Shape) -> Sequence[InputPartition]:
        options, until = self._options, from_json(end)
        begin = self._begin(from_json(start), until)
        shorter = [partition for partition, offset in until.items() if offset < begin[partition]]
        for partition in shorter:
            problem = f"{partition}: the end of the log moved back from {begin[partition]} to {until[partition]}"
            tasks.data_loss(options, problem)
        begin |= self._first(shorter)
        ranges = cut(ranges_between(begin, until), options.min_partitions, options.max_records)
        return [RangePartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)

    def commit(self, end: Shape) -> None:
        """Commit the offsets to the consumer group if the option commitOffsets is true.

        The committed offsets only show other programs how far the query has read. The query itself continues from its
        checkpoint. So if the commit fails, the method only logs a warning.
        """
        if self._options.group is None:
            return
        from hmb.client.admin import Admin

        try:
            with Admin(self._options.bootstrap_servers, security=self._options.security) as admin:
                results = admin.alter_group_offsets(self._options.group, from_json(end))
            for partition, error in results.items():
                if error is not None:
                    LOGGER.warning("%s: cannot commit offset for group %s: %s", partition, self._options.group, error)
        except (ConnectionFailed, KafkaError) as error:
            LOGGER.warning("cannot commit offsets for group %s: %s", self._options.group, error)

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}

    def _open_cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = tasks.cluster_of(self._options)
        return self._cluster

    def _ends(self, known: Mapping[TopicPartition, int]) -> Offsets:
        """Return the end offset of each partition of the query.

        If a partition in `known` (the previous batch) was deleted, leave it out. Raises TopicDeleted if a topic is
        deleted during the call.
        """
        cluster = self._open_cluster()
        partitions = partitions_of(cluster, self._options, known=known)
        for topic in sorted({partition.topic for partition in partitions}):
            self._check_id(topic, cluster.topic(topic).topic_id)
        try:
            return list_offsets(cluster, partitions, LATEST, tasks.isolation_level(self._options))
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise TopicDeleted(error.code, error.message) from error

    def _check_id(self, topic: str, topic_id: UUID) -> None:
        """Report data loss if the topic's id has changed: the topic was deleted and created again.

        With a broker that is older than Kafka 2.8, skip the check, because such a broker sends no topic ids.
        """
        before = self._ids.setdefault(topic, topic_id)
        self._ids[topic] = topic_id
        if before != topic_id and NO_TOPIC_ID not in (before, topic_id):
            tasks.data_loss(self._options, f"topic {topic!r} was deleted and created again while the query ran")

    def _begin(self, before: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
        """Return, for each partition, the offset at which the next batch begins.

        `before` maps each partition to the end offset of the previous batch, where the next batch begins. `end` maps
        each partition to the greatest possible end offset of the next batch.

        A partition that is only in `end` is new. The batch reads it from its log start offset.

        The method reports data loss if a partition was deleted, or if the log of a new partition does not start at
        offset 0.
        """
        deleted = sorted(set(before) - set(end))
        if deleted:
            tasks.data_loss(self._options, f"deleted partitions: {', '.join(map(str, deleted))}")
        new = sorted(set(end) - set(before))
        first = self._first(new)
        for partition, offset in first.items():
            if offset:
                problem = f"the log of the new partition {partition} starts at offset {offset}, not at 0"
                tasks.data_loss(self._options, problem)
        return {**before, **first}

    def _first(self, partitions: list[TopicPartition]) -> Offsets:
        """Return the log start offset of each partition."""
        options = self._options
        return retrying(options, lambda: ends(self._open_cluster(), partitions, tasks.isolation_level(options)))[0]

    def _waits(self, backlog: int) -> bool:
        """Return whether the trigger must wait, because the backlog is below minOffsetsPerTrigger."""
        least = self._options.min_offsets
        if least is None or self._is_available_now or backlog >= least:
            return False
        return time.monotonic() - self._last_batch_at < self._options.max_trigger_delay
