"""Offset ranges: what a task reads, and how much of a backlog one trigger takes.

A range is read by one task.  Without options each partition of a topic is a range; `maxRecordsPerPartition` and
`minPartitions` cut large ones, the larger into the more pieces, as the connector does.  A trigger with
`maxOffsetsPerTrigger` takes of each partition a share in proportion to its backlog, so that none falls behind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from hmb.protocol.topics import TopicPartition
from hmb.spark.offsets import Offsets


class OffsetRange(NamedTuple):
    """Of one partition, from `first` on, before `end`."""

    partition: TopicPartition
    first: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.first

    def __str__(self) -> str:
        return f"{self.partition} [{self.first}, {self.end})"

    def cut(self, pieces: int) -> list[OffsetRange]:
        """As many ranges of nearly the same size."""
        bounds = [self.first + self.size * number // pieces for number in range(pieces + 1)]
        return [self._replace(first=first, end=end) for first, end in pairwise(bounds)]


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """One for each partition in which something is to be read."""
    found = [OffsetRange(partition, start[partition], end[partition]) for partition in sorted(end)]
    return [each for each in found if each.size > 0]


def cut(ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """As many pieces as the options ask for, or nearly: no piece is empty, and none has offsets of two partitions."""
    if max_records is not None:
        ranges = [piece for each in ranges for piece in each.cut(math.ceil(each.size / max_records))]
    if min_partitions is None or len(ranges) >= min_partitions:
        return ranges
    pieces = _pieces([each.size for each in ranges], min_partitions)
    # Small ranges stay whole; what they leave is shared among the others.
    whole = [each.size for each, number in zip(ranges, pieces, strict=True) if number == 1]
    left = max(1, min_partitions - len(whole))
    large = [each for each, number in zip(ranges, pieces, strict=True) if number > 1]
    numbers = dict(zip(large, _pieces([each.size for each in large], left), strict=True))
    return [piece for each in ranges for piece in each.cut(numbers.get(each, 1))]


def _pieces(sizes: list[int], wanted: int) -> list[int]:
    """How many pieces of all each range is to be cut into, by its size."""
    total = sum(sizes)
    return [max(1, min(size, math.floor(size * wanted / total + 0.5))) for size in sizes]


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int) -> Offsets:
    """Ends with at most so many offsets before them in all, of each partition in proportion to its backlog.

    A partition that ends before its start keeps its end: that is a loss, for others to notice.
    """
    backlog = {partition: max(0, end[partition] - start[partition]) for partition in end}
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    # As the connector does: a share below one is rounded up, lest a small partition waits for ever.
    return {
        partition: start[partition] + min(size, max(1, size * most // total)) if size else end[partition]
        for partition, size in backlog.items()
    }
