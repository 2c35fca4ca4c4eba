"""Measure the lag of a streaming query: the number of records that the query has not read yet.

Problem: Spark's Kafka connector reports `avgOffsetsBehindLatest`, `minOffsetsBehindLatest` and
`maxOffsetsBehindLatest` for each trigger. Spark has no such metrics for a data source that is written in Python.

Idea: the progress of a query contains two offsets for each partition. The query continues to read at
`endOffset`, and the log ends at `latestOffset`. The lag of the partition is `latestOffset - endOffset`.

Example: in partition 0, `endOffset` is 90 and `latestOffset` is 100. In partition 1, both are 50. The lags are
10 and 0, and `records` is their sum:
    lag(query.lastProgress)   Lag(minimum=0, average=5.0, maximum=10, records=10)

To see the lag of each trigger, pass a function to a `LagListener`, and add the listener to the session:
    spark.streams.addListener(LagListener(lambda progress, lag: print(progress.batchId, lag)))

A lag is a number of offsets. Users may also want to know the lag in bytes, but the progress of a query contains no
sizes. So pass an `hmb.Admin` to the function `lag` as its second argument. The function then asks the brokers for the
sizes of the logs, and estimates the bytes that the query has not read yet:
    unread bytes of a partition = lag * size of its log / number of its offsets

For example, the log of partition 0 has the offsets 0 to 99 and 5,000 bytes: on average, 50 bytes for each
offset. Partition 0 has a lag of 10 offsets, or about 500 bytes. Partition 1 has no lag:
    lag(query.lastProgress, admin)   Lag(minimum=0, average=5.0, maximum=10, records=10, bytes=500)

A `LagListener` calls the user's function whenever a streaming query reports its progress. It passes the
progress and the lag. The field `bytes` of this lag is None, because a `LagListener` has no `hmb.Admin` that
could ask for the sizes of the logs. To estimate the bytes, the user's function can call `lag(progress, admin)`.

Limits: `latestOffset` needs Spark 4.2 or newer. The estimate of the unread bytes is exact only if all batches
of a partition have the same size and the same number of records. For compressed records, the estimate is their
compressed size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.spark.offsets import Offsets, from_json

if TYPE_CHECKING:
    from hmb.client.admin import Admin


class Lag(NamedTuple):
    """The lags of the partitions that a query reads: the smallest, the average, the largest and the sum.

    `bytes` is the estimated size of the records that the query has not read yet. It is None if the function `lag` was
    called without an Admin.
    """

    minimum: int
    average: float
    maximum: int
    records: int  # the sum over all partitions
    bytes: int | None = None


def lag(progress: StreamingQueryProgress, admin: Admin | None = None) -> Lag | None:
    """Return the lag of a query (see `Lag`): how many records the query has not read yet.

    `progress` is Spark's report about a trigger (one step of the query), for example `query.lastProgress`. The
    lag includes all sources that use `hmb` or Spark's Kafka connector. If `progress` contains no offsets of
    such a source, the result is None.

    With `admin`, the function also estimates the unread bytes. It asks the brokers for the sizes of the logs,
    so it can raise KafkaError or ConnectionFailed.
    """
    behind = [
        (partition, max(0, latest.get(partition, offset) - offset))
        for end, latest in _offsets(progress)
        for partition, offset in end.items()
    ]
    if not behind:
        return None
    lags = [each for _, each in behind]
    found = Lag(min(lags), sum(lags) / len(lags), max(lags), sum(lags))
    return found if admin is None else found._replace(bytes=_estimated_bytes(admin, behind))


def _estimated_bytes(admin: Admin, behind: list[tuple[TopicPartition, int]]) -> int:
    partitions = {partition for partition, _ in behind}
    # If a replica is not in sync, some records may be missing in it. So use the size (bytes) of each partition's
    # largest replica.
    sizes: dict[TopicPartition, int] = {}
    for directories in admin.describe_log_dirs().values():
        for directory in directories:
            for partition, replica in directory.replicas.items():
                sizes[partition] = max(sizes.get(partition, 0), replica.size)
    first = admin.list_offsets(dict.fromkeys(partitions, "earliest"))
    last = admin.list_offsets(dict.fromkeys(partitions, "latest"))
    total = 0.0
    for partition, records in behind:
        start, end = first[partition], last[partition]
        if isinstance(start, KafkaError) or isinstance(end, KafkaError):
            continue  # The topic was deleted after the trigger.
        total += records * sizes.get(partition, 0) / max(1, end.offset - start.offset)
    return round(total)


def _offsets(progress: StreamingQueryProgress) -> Iterator[tuple[Offsets, Offsets]]:
    """Yield `endOffset` and `latestOffset` of each source whose offsets have the form {topic: {partition: offset}}."""
    for source in progress.sources:
        try:
            yield _parsed(source.endOffset), _parsed(source.latestOffset)
        except ValueError:  # The offsets belong to another data source.
            continue


def _parsed(text: str | None) -> Offsets:
    shape: Any = json.loads(text or "null")
    return from_json(shape)


class LagListener(StreamingQueryListener):
    """A listener that calls a function after each trigger of each query, with the progress and the lag."""

    def __init__(self, report: Callable[[StreamingQueryProgress, Lag], object]) -> None:
        self._report = report

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        found = lag(event.progress)
        if found is not None:
            self._report(event.progress, found)

    def onQueryIdle(self, event: object) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass
