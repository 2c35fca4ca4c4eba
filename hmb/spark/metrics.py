"""Measure the lag of a streaming query: the number of records that the query has not read yet.

Problem: Spark's Kafka connector reports `avgOffsetsBehindLatest`, `minOffsetsBehindLatest` and
`maxOffsetsBehindLatest` for each trigger. Spark has no such metrics for a data source that is written in Python.

Idea: the progress of a query contains two offsets for each partition: `endOffset`, up to which the trigger has read,
and `latestOffset`, the end of the log. The lag of a partition is their difference.

Example: in partition 0, `endOffset` is 90 and `latestOffset` is 100. In partition 1, both are 50. The lags are 10 and
0:
    lag(query.lastProgress)   Lag(minimum=0, average=5.0, maximum=10, records=10)

To see the lag of each trigger, pass a function to a `LagListener`, and add the listener to the session:
    spark.streams.addListener(LagListener(lambda progress, lag: print(progress.batchId, lag)))

Limit: `latestOffset` needs Spark 4.2 or newer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from hmb.spark.offsets import Offsets, from_json


class Lag(NamedTuple):
    """The lags of the partitions that a query reads: the smallest, the average, the largest and the sum."""

    minimum: int
    average: float
    maximum: int
    records: int  # the sum over all partitions


def lag(progress: StreamingQueryProgress) -> Lag | None:
    """Return the lag of a query after a trigger. Return None if the progress contains no offsets of this data source.

    `progress` is, for example, `query.lastProgress`. The result includes all sources of the query that use `hmb` or
    Spark's Kafka connector.
    """
    behind = [
        max(0, latest.get(partition, offset) - offset)
        for end, latest in _offsets(progress)
        for partition, offset in end.items()
    ]
    return Lag(min(behind), sum(behind) / len(behind), max(behind), sum(behind)) if behind else None


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
