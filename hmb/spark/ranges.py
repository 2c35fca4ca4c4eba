"""Divide the offsets of a query into ranges, one for each task. Limit how many offsets a streaming query reads at once.

Each task reads one range of offsets of one partition. By default, a query has one range for each partition. The
options `maxRecordsPerPartition` and `minPartitions` divide large ranges into smaller ranges. A large range is
divided into more parts than a small range. Spark's Kafka connector divides ranges in the same way.

For example, `minPartitions` is 4, and a query reads the ranges `weather-0 [0, 300)` and `weather-1 [0, 100)`.
The ranges contain 400 offsets in total, so each of four tasks should read about 100 offsets. The first range is
therefore divided into three ranges: [0, 100), [100, 200) and [200, 300). The second range has only 100 offsets,
so it is not divided.

A streaming query reads its records in steps, which are called triggers. The option `maxOffsetsPerTrigger`
limits how many offsets one trigger reads. The *backlog* of a partition is the number of offsets that the
query has not read yet. A trigger reads more offsets of a partition with a larger backlog. It reads at least
one offset of each partition with unread offsets.

For example, `maxOffsetsPerTrigger` is 100, and two partitions have backlogs of 300 and 100 offsets. The trigger
reads 75 offsets of the first partition and 25 of the second.
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
        """Divide the range into `pieces` ranges of nearly equal size."""
        bounds = [self.first + self.size * number // pieces for number in range(pieces + 1)]
        return [self._replace(first=first, end=end) for first, end in pairwise(bounds)]


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """Return one range for each partition that has offsets to read, sorted by topic and partition."""
    found = [OffsetRange(partition, start[partition], end[partition]) for partition in sorted(end)]
    return [each for each in found if each.size > 0]


def cut(ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Divide large ranges: about `min_partitions` ranges in total, each with at most `max_records` offsets.

    The result has fewer ranges if the offsets are too few, and more ranges if `max_records` requires them. Because
    of rounding, it can also have a few ranges more or fewer. No range is empty.
    """
    if max_records is not None:
        ranges = [piece for each in ranges for piece in each.cut(math.ceil(each.size / max_records))]
    if min_partitions is None or len(ranges) >= min_partitions:
        return ranges
    pieces = _pieces([each.size for each in ranges], min_partitions)
    # Each range gets at least one piece, so the sum of the pieces can exceed `min_partitions`. Therefore count the
    # ranges with one piece, and divide the other ranges into the remaining number of pieces.
    whole = [each.size for each, number in zip(ranges, pieces, strict=True) if number == 1]
    remaining = max(1, min_partitions - len(whole))
    large = [each for each, number in zip(ranges, pieces, strict=True) if number > 1]
    numbers = dict(zip(large, _pieces([each.size for each in large], remaining), strict=True))
    return [piece for each in ranges for piece in each.cut(numbers.get(each, 1))]


def _pieces(sizes: list[int], wanted: int) -> list[int]:
    """Return the number of pieces for each range, in proportion to its size. The sum is about `wanted`."""
    total = sum(sizes)
    return [max(1, min(size, math.floor(size * wanted / total + 0.5))) for size in sizes]


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int) -> Offsets:
    """Return the end offset of each partition, so that all ranges together contain about `most` offsets.

    The range of a partition begins at the partition's offset in `start`. It ends at or before the log end
    offset in `end`. Each partition with unread offsets gets at least one offset, so the ranges together can
    contain a few more offsets than `most`.

    If the log end offset of a partition is below the offset in `start`, records were lost. The function
    returns this log end offset, and the caller reports the loss.
    """
    backlog = {partition: max(0, end[partition] - start[partition]) for partition in end}
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    # The division rounds down, so a partition with few unread offsets could get 0 offsets every time. The minimum is
    # therefore 1 offset, as in Spark's Kafka connector.
    return {
        partition: start[partition] + min(size, max(1, size * most // total)) if size else end[partition]
        for partition, size in backlog.items()
    }
