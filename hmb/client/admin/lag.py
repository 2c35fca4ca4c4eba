"""How far behind groups are, in records and in time, and where they can be set to.

The lag of a group in a partition is what lies between its committed offset and the log's end.  Two numbers say it: a
million records may be a second's worth, and three may have waited since yesterday.  So the first record that the group
has not read is fetched, and its timestamp tells since when.

A reset is planned first, partition by partition, and can be looked at before `alter_group_offsets` makes it true.  An
offset that the log does not hold would leave the group to its `auto.offset.reset`, so a plan stays within the log.
"""

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

AT_ONCE = 100  # partitions
ENOUGH_FOR_A_BATCH = 64 * 1024  # bytes: as batches mostly are; the first batch of an answer may be larger


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many offsets after what is committed; before it, if negative."""

    count: int


ResetTo = Literal["earliest", "latest", "current"] | int | AtTime | ShiftBy


class PartitionLag(NamedTuple):
    """A group in a partition; None where nothing is committed, the topic is gone, or no time is known."""

    committed: OffsetAndMetadata | None
    log_start_offset: int | None
    log_end_offset: int | None
    unread_since: int | None  # the timestamp of the first record that was not read, ms

    @property
    def lag(self) -> int | None:
        """In records, gaps of compaction counted in."""
        if self.committed is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed.offset


class PlannedOffset(NamedTuple):
    """What a group has committed in a partition, what it would be, and whether the log's ends had a say in that."""

    committed: int | None
    offset: int
    was_clipped: bool


class LagAdmin(GroupOffsetsAdmin, RecordsAdmin):
    def describe_lag(
        self, group: str, partitions: Iterable[TopicPartition] = (), *, times: bool = True
    ) -> dict[TopicPartition, PartitionLag]:
        """How far behind a group is, where it has committed anything and in these partitions.

        `times` asks for a record of each partition with a lag, which costs up to 64 KB each.
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
        """What the group's offsets would be after a reset; nothing is changed.

        "current" is what is committed, or the end; a time that no record has reached is the end, too.
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
        """The timestamps of the records at these offsets, or of the next ones; nothing where there is none."""
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
    """One request; what is left to ask for.  It gets shorter or goes on, for the first partition is always answered."""
    asked = list(islice(wanted.items(), AT_ONCE))
    fetched = consumer.multifetch(PartitionFetch(*it, offset, ENOUGH_FOR_A_BATCH) for it, offset in asked)
    left = {}
    for number, ((partition, offset), answer) in enumerate(zip(asked, fetched, strict=True)):
        if isinstance(answer, KafkaError):
            continue
        if answer.records:
            if answer.records[0].timestamp >= 0:
                found[partition] = answer.records[0].timestamp
        elif answer.next_offset > offset or number:  # a marker of a transaction; or the answer was full
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
                what = f"group {group!r} has committed nothing in {partition}, so that there is nothing to shift"
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, what)
            return committed + count
        case int():
            return to
    raise ValueError(f"{to!r} is nothing to reset an offset to")
