"""Uses the filters of a batch query to skip offsets at which no record can match.

Problem: a topic holds the records of a month, and a query needs one hour: `WHERE timestamp >= '2026-01-31 23:00'`.
Without help, Spark reads the records of the whole month, and then removes nearly all of them.

Idea: Spark passes simple filters to the reader (*pushed-down filters*, since Spark 4.1). If a filter selects
one hour, the reader asks the brokers for the offsets at which this hour begins and ends. It reads only the
records between these offsets. Spark applies every filter again to the rows that it receives. If the reader
returns too many records, the result is therefore still correct. But the reader must never skip a record that
matches.

To make Spark pass the filters of a query to the reader, set the option `pushFilters=true`. Spark must also have
the setting `spark.sql.python.filterPushdown.enabled=true`, which `hmb.spark.session()` sets. If a filter
compares one of these columns with a value, the query reads fewer records:
    topic, partition    =, IN, <, <=, >, >=     the query reads no other partitions
    offset              =, IN, <, <=, >, >=     the query reads no other offsets
    timestamp           =, IN, >, >=            the query begins at the first record at or after this time
    timestamp           =, IN, <, <=            with the option `maxLateness`, the query ends early

Example: partition `weather-0` contains the offsets 0 to 719,999, one record for each second. The filter `timestamp >=
'2026-01-31 23:00'` matches the records of the last hour. ListOffsets returns offset 716,400 for this time, and the
query reads 3,600 records.

The records in a log can be out of order, because producers set the timestamps. For example, a query needs the
records before 12:00. The log contains a record of 12:05, and after it a record of 11:58. If the query ended at
12:05, it would miss the record of 11:58. A query with an upper limit for the timestamp therefore ends early only
with the option `maxLateness`.

Only the user knows how late a record can be. With the filter `timestamp < '12:00'` and the option
`maxLateness=10m`, the reader stops before the first record of 12:10 or later. If the broker sets the timestamps
(`message.timestamp.type=LogAppendTime`), no record is late, so use `maxLateness=0s`.

Why is `pushFilters` off by default? Spark 4.3.0 stores the ranges of the first query in the DataFrame that
`load()` returns. It then uses the same ranges for all later queries of this DataFrame. In this program, the
first query reads only offset 7. The second query should return 100, but it reads the same range and returns 1:
    records = spark.read.format("hmb").option("pushFilters", "true")....load()     # 100 records
    records.where("offset = 7").count()
    records.count()

If you use the option `pushFilters=true`, call `load()` again for each query. If two queries share one `load()`
call, the second query reads only the offsets that the first query has read. For the same reason, call `load()`
for each part of a union or a join.

With a filter on the key, the reader still reads all partitions. The producer's partitioner has chosen the
partition of each key. The reader does not know this partitioner, so it does not know which partition contains
a key.
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
    """The range of numbers that the filters on a column allow: from `first` (inclusive) to `end` (exclusive)."""

    first: int = -INT64_MAX
    end: int = INT64_MAX


def narrowed(
    cluster: Cluster,
    ranges: Iterable[OffsetRange],
    filters: Sequence[Filter],
    isolation_level: int,
    max_lateness: float | None,
) -> list[OffsetRange]:
    """Return only the parts of the offset ranges in which a record can match the filters.

    `max_lateness` is the value of the option maxLateness in seconds, or None if the option is not set. Raises
    KafkaError or ConnectionFailed if a broker cannot look up the offsets of a time.
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
    """Return the range of values that all filters on this column allow.

    The function `number` converts the value in a filter to an integer, for example a time to microseconds. It
    returns None if the value has a wrong type. `_bounds` then ignores the filter, so the range can be too large,
    but never too small.
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
    """Convert a time from microseconds to ms, and round it up.

    The time is the limit in a filter on timestamps. The timestamps of records are whole numbers of ms, so rounding
    up changes no result. For example, `timestamp >= 1.2 ms` and `timestamp >= 2 ms` match the same records.
    """
    return -(-microseconds // 1000)
