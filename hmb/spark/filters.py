"""Use the filters of a batch query: read only the ranges of offsets that can contain matching records.

Problem: a topic holds the records of a month, and a query needs one hour: `WHERE timestamp >= '2026-01-31 23:00'`.
Without help, Spark reads the records of the whole month, and then removes nearly all of them.

Idea: Spark passes simple filters to the reader (*pushed-down filters*, from Spark 4.1 on). If a filter selects one
hour, the reader asks the brokers for the offsets at which this hour begins and ends. The reader reads only the records
between these offsets. Spark still evaluates every filter on the rows that it receives. The ranges may therefore be too
large, but they must never be too small.

The option `pushFilters=true` turns pushed-down filters on. This option needs the setting
`spark.sql.python.filterPushdown.enabled=true`, which `hmb.spark.session()` sets. A filter helps if it compares one of
these columns with a value:
    topic, partition    =, IN, <, <=, >, >=     the query does not read the other partitions
    offset              =, IN, <, <=, >, >=     the query reads these offsets only
    timestamp           =, IN, >, >=            the query begins at the first record at or after this time
    timestamp           =, IN, <, <=            the query ends early, but only with the option `maxLateness`

Example: partition `weather-0` contains the offsets 0 to 719,999, one record for each second. The filter `timestamp >=
'2026-01-31 23:00'` matches the records of the last hour. ListOffsets returns offset 716,400 for this time, and the
query reads 3,600 records.

A query with an upper limit for the timestamp can end early only with the option `maxLateness`. Producers set the
timestamps, so even after a record that is newer than the limit, the log can contain records that are older than the
limit. Only the user knows how late such records can be. With `maxLateness=10m`, the reader ends at the first record
that is at least ten minutes newer than the limit. If the broker sets the timestamps (the topic's setting
`message.timestamp.type=LogAppendTime`), no record is late, and `maxLateness=0s` is right.

Why `pushFilters` is off by default: Spark 4.3.0 stores the ranges of a query in the DataFrame that `load()` has
returned, and uses them for later queries of this DataFrame. In this program, the first query reads only the range of
offset 7. The second query uses the same range, and returns 1 instead of 100:
    records = spark.read.format("hmb").option("pushFilters", "true")....load()     # 100 records
    records.where("offset = 7").count()
    records.count()

With the option `pushFilters=true`, each query must call `load()` itself, because Spark would use the ranges of an
earlier query again. Each part of a union or a join must also call `load()` itself.

A filter on the key does not make the ranges smaller. A producer's partitioner chooses the partition for a key, and the
reader does not know which partitioner the producers used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from hmb.client.metadata import Cluster
from hmb.client.offsets import NOT_FOUND, list_offsets
from hmb.protocol.enums import INT64_MAX
from hmb.protocol.topics import TopicPartition
from hmb.spark.ranges import OffsetRange
from hmb.units import EPOCH

COMPARISONS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    In: lambda value, values: value in values,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
EQUALITIES = (EqualTo, EqualNullSafe, In)


class Bounds(NamedTuple):
    """The numbers that filters allow in a column: from `first` (inclusive) to `end` (exclusive)."""

    first: int = -INT64_MAX
    end: int = INT64_MAX


def narrowed(
    cluster: Cluster,
    ranges: Iterable[OffsetRange],
    filters: Sequence[Filter],
    isolation_level: int,
    max_lateness: float | None,
) -> list[OffsetRange]:
    """Return the offset ranges, but without the parts in which no record can match all filters.

    `max_lateness` is the option maxLateness in seconds, or None if it is not set. Raises KafkaError, ConnectionFailed.
    """
    offsets = _bounds(filters, "offset", _integer)
    found = [
        each._replace(first=max(each.first, offsets.first), end=min(each.end, offsets.end))
        for each in ranges
        if _allows(filters, "topic", each.partition.topic) and _allows(filters, "partition", each.partition.partition)
    ]
    times = _bounds(filters, "timestamp", _microseconds)
    found = [each for each in found if each.size > 0 and times.first < times.end]
    partitions = [each.partition for each in found]
    if times.first > 0:
        begins = list_offsets(cluster, partitions, _milliseconds(times.first), isolation_level)
        found = [
            each._replace(first=max(each.first, begins[each.partition]))
            for each in found
            if begins[each.partition] != NOT_FOUND
        ]
    if times.end < INT64_MAX and max_lateness is not None:
        latest = max(0, _milliseconds(times.end) + int(max_lateness * 1000))
        ends = list_offsets(cluster, partitions, latest, isolation_level)
        found = [each._replace(end=min(each.end, _end(ends, each.partition))) for each in found]
    return [each for each in found if each.size > 0]


def _end(ends: dict[TopicPartition, int], partition: TopicPartition) -> int:
    """Return the offset at which the reader can stop, or INT64_MAX if it must read the partition to its end."""
    return INT64_MAX if ends[partition] == NOT_FOUND else ends[partition]


def _of(filters: Iterable[Any], column: str) -> Iterator[tuple[type[Filter], Any]]:
    """Yield the kind and the value of each filter that compares this column with a value."""
    for each in filters:
        if type(each) in COMPARISONS and each.attribute == (column,) and each.value is not None:
            yield type(each), each.value


def _allows(filters: Iterable[Filter], column: str, value: object) -> bool:
    """Return whether all filters on the column `column` accept this value."""
    return all(COMPARISONS[kind](value, wanted) for kind, wanted in _of(filters, column))


def _bounds(filters: Iterable[Filter], column: str, number: Callable[[Any], int | None]) -> Bounds:
    """Return the numbers that all filters together allow in this column.

    `number` converts a value of a filter to a number. If the value has a wrong type, `number` returns None, and the
    function ignores this filter.
    """
    first, end = Bounds()
    for kind, value in _of(filters, column):
        numbers = [number(each) for each in (value if kind is In else (value,)) if each is not None]
        known = [each for each in numbers if each is not None]
        if not known or len(known) < len(numbers):
            continue
        if kind in EQUALITIES or kind is GreaterThanOrEqual:
            first = max(first, min(known))
        elif kind is GreaterThan:
            first = max(first, known[0] + 1)
        if kind in EQUALITIES or kind is LessThanOrEqual:
            end = min(end, max(known) + 1)
        elif kind is LessThan:
            end = min(end, known[0])
    return Bounds(first, end)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _microseconds(value: object) -> int | None:
    """Return a time as the microseconds since 1970, or None if the value is not a time with a time zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - EPOCH) // timedelta(microseconds=1)


def _milliseconds(microseconds: int) -> int:
    """Convert a limit for timestamps from microseconds to ms, and round it up.

    The timestamps of records are whole numbers of ms. So the limits 1.2 ms and 2 ms select the same records: no
    timestamp is between them.
    """
    return -(-microseconds // 1000)
