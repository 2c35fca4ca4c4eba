"""Offset ranges: how a query is divided into tasks, and how many offsets one trigger reads.

Each task reads one range of offsets of one partition. By default, each partition of a topic is one range. The options
`maxRecordsPerPartition` and `minPartitions` cut large ranges into pieces. Larger ranges are cut into more pieces, as in
Spark's Kafka connector.

Example for `minPartitions=4`: the ranges `weather-0 [0, 300)` and `weather-1 [0, 100)` hold 400 offsets, so each task
should read about 100. The first range is cut into three pieces: [0, 100), [100, 200) and [200, 300). The second range
stays whole.

The option `maxOffsetsPerTrigger` limits how much one trigger of a streaming query reads. Each partition gets a share in
proportion to its backlog, the offsets that are not yet read. With a limit of 100, backlogs of 300 and 100 offsets get
75 and 25 offsets. No partition has to wait for another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from hmb.protocol.topics import TopicPartition
from hmb.spark.offsets import Offsets


class OffsetRange(NamedTuple):
    """The offsets of one partition from `first` (inclusive) to `end` (exclusive)."""

    partition: TopicPartition
    first: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.first

    def __str__(self) -> str:
        return f"{self.partition} [{self.first}, {self.end})"

    def cut(self, pieces: int) -> list[OffsetRange]:
        """Cut the range into `pieces` ranges of nearly equal size."""
        bounds = [self.first + self.size * number // pieces for number in range(pieces + 1)]
        return [self._replace(first=first, end=end) for first, end in pairwise(bounds)]


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """Return one range for each partition that has offsets to read, in order of topics and partitions."""
    found = [OffsetRange(partition, start[partition], end[partition]) for partition in sorted(end)]
    return [each for each in found if each.size > 0]


def cut(ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Cut large ranges so that there are at least `min_partitions` pieces with at most `max_records` offsets each.

    Because of rounding there may be fewer pieces than `min_partitions`. No piece is empty.
    """
    if max_records is not None:
        ranges = [piece for each in ranges for piece in each.cut(math.ceil(each.size / max_records))]
    if min_partitions is None or len(ranges) >= min_partitions:
        return ranges
    pieces = _pieces([each.size for each in ranges], min_partitions)
    # Small ranges stay whole. The large ranges are cut into the remaining number of pieces.
    whole = [each.size for each, number in zip(ranges, pieces, strict=True) if number == 1]
    remaining = max(1, min_partitions - len(whole))
    large = [each for each, number in zip(ranges, pieces, strict=True) if number > 1]
    numbers = dict(zip(large, _pieces([each.size for each in large], remaining), strict=True))
    return [piece for each in ranges for piece in each.cut(numbers.get(each, 1))]


def _pieces(sizes: list[int], wanted: int) -> list[int]:
    """Return the number of pieces for each range, in proportion to its size: about `wanted` pieces in total."""
    total = sum(sizes)
    return [max(1, min(size, math.floor(size * wanted / total + 0.5))) for size in sizes]


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int) -> Offsets:
    """Return the end offsets of a trigger that reads at most `most` offsets, shared in proportion to the backlogs.

    `start` is the next offset to read in each partition, and `end` is the end of its log. An end below the start stays
    as it is: records were lost, and the caller reports that.
    """
    backlog = {partition: max(0, end[partition] - start[partition]) for partition in end}
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    # A partition whose share is below 1 record still gets one record, as in Spark's Kafka connector. Otherwise a small
    # partition would never be read.
    return {
        partition: start[partition] + min(size, max(1, size * most // total)) if size else end[partition]
        for partition, size in backlog.items()
    }
