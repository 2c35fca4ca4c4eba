"""The methods of `Admin` for the lag of groups, and for resets of committed offsets.

The lag of a group in a partition is the distance from its committed offset to the end of the log. Two numbers describe
it. A million records may have arrived in the last second, and three records may have waited since yesterday. The admin
therefore also fetches the first record that the group has not read, and returns its timestamp.

A reset has two steps. `plan_reset` returns the new offset of each partition, so that a user can check the plan.
`alter_group_offsets` then commits it. An offset outside the log would make the consumers use `auto.offset.reset`, so a
plan only contains offsets inside the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from hmb.client.admin.base import raised
from hmb.client.admin.group_offsets import GroupOffsetsAdmin
from hmb.client.admin.records import ListedOffset, OffsetSpec, RecordsAdmin
from hmb.client.arguments import list_of_partitions
from hmb.client.consuming.simple_consumer import PartitionFetch, SimpleConsumer
from hmb.client.group.interface import OffsetAndMetadata
from hmb.client.metadata import Node
from hmb.client.offsets import AtTime
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

AT_ONCE = 100  # partitions in one fetch
FETCH_BYTES = 64 * 1024  # bytes of each partition; brokers return a larger first batch anyway


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """The offset `count` after the committed one. A negative count moves backwards."""

    count: int


ResetTo = Literal["earliest", "latest", "current"] | int | AtTime | ShiftBy


class PartitionLag(NamedTuple):
    """The lag of a group in one partition.

    `unread_since` is the timestamp (ms) of the first record that the group has not read. A field is None if the group
    has committed nothing, if the topic does not exist, or if the record has no timestamp.
    """

    committed: OffsetAndMetadata | None
    log_start_offset: int | None
    log_end_offset: int | None
    unread_since: int | None

    @property
    def lag(self) -> int | None:
        """The number of offsets from the committed one to the end of the log.

        A compacted log contains fewer records.
        """
        if self.committed is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed.offset


class PlannedOffset(NamedTuple):
    """The committed offset of a partition before and after a reset.

    `was_clipped` is True if the requested offset is outside the log, and `offset` is the nearest offset inside the log.
    """

    committed: int | None
    offset: int
    was_clipped: bool


class LagAdmin(GroupOffsetsAdmin, RecordsAdmin):
    """The methods of `Admin` for the lag of groups."""

    def describe_lag(
        self, group: str, partitions: Iterable[TopicPartition] = (), *, times: bool = True
    ) -> dict[TopicPartition, PartitionLag]:
        """Return a group's lag in each partition with a committed offset, and in the given partitions.

        With `times`, the method fetches a record of each partition with a lag. Such a fetch returns up to 64 KB for
        each partition.
        """
        more = list_of_partitions(partitions)
        committed = self.list_group_offsets(group)
        wanted = sorted({*committed, *more})
        start = self.list_offsets(dict.fromkeys(wanted, "earliest"))
        end = self.list_offsets(dict.fromkeys(wanted, "latest"))
        described = {it: PartitionLag(committed.get(it), _offset(start[it]), _offset(end[it]), None) for it in wanted}
        if times:
            unread = {
                partition: max(lag.committed.offset, lag.log_start_offset or 0)
                for partition, lag in described.items()
                if lag.lag and lag.committed is not None
            }
            for partition, timestamp in self._timestamps(unread).items():
                described[partition] = described[partition]._replace(unread_since=timestamp)
        return described

    def plan_reset(
        self, group: str, partitions: Iterable[TopicPartition], to: ResetTo
    ) -> dict[TopicPartition, PlannedOffset]:
        """Return the offsets that a reset would commit. The method changes nothing.

        "current" means the committed offset, or the end of the log if the group has committed none. A time after all
        records means the end.
        """
        wanted = list_of_partitions(partitions)
        committed = self.list_group_offsets(group, wanted)
        start, end = self._offsets(dict.fromkeys(wanted, "earliest")), self._offsets(dict.fromkeys(wanted, "latest"))
        at = self._offsets(dict.fromkeys(wanted, to.timestamp)) if isinstance(to, AtTime) else {}
        planned = {}
        for partition in wanted:
            before = committed[partition].offset if partition in committed else None
            if partition in at:
                offset = end[partition] if at[partition] < 0 else at[partition]
            else:
                offset = _target(group, partition, to, before, start[partition], end[partition])
            clipped = min(max(offset, start[partition]), end[partition])
            planned[partition] = PlannedOffset(before, clipped, clipped != offset)
        return planned

    def _offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        return {partition: raised(found).offset for partition, found in self.list_offsets(specs).items()}

    def _timestamps(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the timestamp of the first record at or after each offset.

        Partitions without such a record are missing in the result.
        """
        by_leader: dict[Node, dict[TopicPartition, int]] = {}
        for partition, offset in offsets.items():
            by_leader.setdefault(self.cluster.leader(partition), {})[partition] = offset
        found: dict[TopicPartition, int] = {}
        for leader, wanted in by_leader.items():
            with SimpleConsumer(leader.host, leader.port, timeout=self._request_timeout) as consumer:
                while wanted:
                    wanted = _next_records(consumer, wanted, found)
        return found


def _next_records(
    consumer: SimpleConsumer, wanted: Mapping[TopicPartition, int], found: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Fetch from the next partitions, and store the timestamps of their first records in `found`.

    Return the partitions that remain.

    A broker always answers the first partition, so each request removes a partition or moves its offset.
    """
    asked = list(islice(wanted.items(), AT_ONCE))
    fetched = consumer.multifetch(PartitionFetch(*it, offset, FETCH_BYTES) for it, offset in asked)
    left = {}
    for number, ((partition, offset), answer) in enumerate(zip(asked, fetched, strict=True)):
        if isinstance(answer, KafkaError):
            continue
        if answer.records:
            if answer.records[0].timestamp >= 0:
                found[partition] = answer.records[0].timestamp
        elif answer.next_offset > offset or number:  # The batch was a transaction marker, or the response was full.
            left[partition] = answer.next_offset
    return left | dict(islice(wanted.items(), AT_ONCE, None))


def _offset(found: ListedOffset | KafkaError) -> int | None:
    if isinstance(found, ListedOffset):
        return found.offset
    if found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    raise found


def _target(group: str, partition: TopicPartition, to: ResetTo, committed: int | None, start: int, end: int) -> int:
    match to:
        case "earliest":
            return start
        case "latest":
            return end
        case "current":
            return end if committed is None else committed
        case ShiftBy(count):
            if committed is None:
                what = f"group {group!r} has committed no offset in {partition} that could be shifted"
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, what)
            return committed + count
        case int():
            return to
    raise ValueError(f"an offset cannot be reset to {to!r}")
