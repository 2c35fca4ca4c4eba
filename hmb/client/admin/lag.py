"""The methods of `Admin` that return the lag of groups, and that plan a reset of committed offsets.

The *lag* of a group in a partition is the log end offset minus the group's committed offset. So the lag is the number
of offsets that the group has not read yet. The lag does not show how long the records have been waiting. A million
unread records may be one second old, and three unread records may be a day old. The admin therefore also fetches the
first record that the group has not read, and returns the timestamp of this record.

To *reset* a group means to replace its committed offsets. A reset takes two steps. First, `plan_reset` returns the new
offset of each partition, so that a user can check the new offsets. Then `alter_group_offsets` commits the new offsets.

A consumer can read only offsets between the log start offset and the log end offset. The plan of a reset therefore
contains no other offsets. If a group commits an offset outside the log, a Kafka consumer cannot use it. The consumer
then follows its setting `auto.offset.reset`: it usually starts at the beginning or at the end of the log.

A share group has start offsets instead of committed offsets. `plan_share_reset` plans new start offsets, and
`alter_share_offsets` stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from hmb.client.admin.brokers import Brokers, raised
from hmb.client.admin.group_offsets import list_group_offsets
from hmb.client.admin.records import OffsetSpec, list_offsets
from hmb.client.admin.share_groups import list_share_offsets
from hmb.client.arguments import list_of_partitions
from hmb.client.consuming.simple_consumer import PartitionFetch, SimpleConsumer
from hmb.client.group.interface import OffsetAndMetadata
from hmb.client.metadata import Node
from hmb.client.offsets import AtTime, ListedOffset
from hmb.defaults import OffsetName
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

AT_ONCE = 100  # partitions in one fetch
FETCH_BYTES = 64 * 1024  # bytes for each partition; but a larger first batch is returned whole


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """A target for `plan_reset`: the new offset is the old committed offset plus `count`. `count` may be negative."""

    count: int


ShareResetTo = OffsetName | int | AtTime
ResetTo = ShareResetTo | Literal["current"] | ShiftBy


class PartitionLag(NamedTuple):
    """The lag of a group in one partition.

    - `committed` is None if the group has committed no offset.
    - `log_start_offset` and `log_end_offset` are None if the topic does not exist.
    - `unread_since` is the timestamp (ms) of the first record that the group has not read. It is None if there is
      no such record, if the record has no timestamp, or if the caller has not asked for timestamps.
    """

    committed: OffsetAndMetadata | None
    log_start_offset: int | None
    log_end_offset: int | None
    unread_since: int | None

    @property
    def lag(self) -> int | None:
        """The log end offset minus the committed offset, or None if either offset is unknown.

        In a compacted log, some offsets have no record. The lag can then be greater than the number of unread records.
        """
        if self.committed is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed.offset


class PlannedOffset(NamedTuple):
    """A group's offset in a partition before a reset (`committed`) and after the reset (`offset`).

    For a share group, both are start offsets. If the requested offset is outside the log, `offset` is the nearest
    offset inside the log, and `was_clipped` is True.
    """

    committed: int | None
    offset: int
    was_clipped: bool


def describe_lag(
    brokers: Brokers, group: str, partitions: Iterable[TopicPartition] = (), *, times: bool = True
) -> dict[TopicPartition, PartitionLag]:
    """Return a group's lag in each partition with a committed offset, and in each of `partitions`.

    If `times` is true, the method looks for the first unread record of each partition in which the lag is not 0.
    The result contains the timestamp of this record (`unread_since`). Each request asks for up to 64 KB of
    records from each of these partitions.
    """
    more = list_of_partitions(partitions)
    committed = list_group_offsets(brokers, group)
    wanted = sorted({*committed, *more})
    start = list_offsets(brokers, dict.fromkeys(wanted, "earliest"))
    end = list_offsets(brokers, dict.fromkeys(wanted, "latest"))
    described = {it: PartitionLag(committed.get(it), _offset(start[it]), _offset(end[it]), None) for it in wanted}
    if times:
        unread = {
            partition: max(lag.committed.offset, lag.log_start_offset or 0)
            for partition, lag in described.items()
            if lag.lag and lag.committed is not None
        }
        for partition, timestamp in _timestamps(brokers, unread).items():
            described[partition] = described[partition]._replace(unread_since=timestamp)
    return described


def plan_reset(
    brokers: Brokers, group: str, partitions: Iterable[TopicPartition], to: ResetTo
) -> dict[TopicPartition, PlannedOffset]:
    """Return the offsets that a reset would commit. This method commits nothing.

    The new offset depends on `to`, and is moved to the nearest offset inside the log if necessary:

    - "earliest" or "latest": the log start offset or the log end offset.
    - An integer: this offset.
    - "current": the committed offset. If the group has committed no offset, the log end offset.
    - `ShiftBy(count)`: the committed offset plus `count`.
    - `AtTime(time)`: the first record at or after this time. If all records are older, the log end offset.
    """
    wanted = list_of_partitions(partitions)
    committed = {it: found.offset for it, found in list_group_offsets(brokers, group, wanted).items()}
    return _plan(brokers, group, {partition: committed.get(partition) for partition in wanted}, to)


def plan_share_reset(
    brokers: Brokers, group: str, partitions: Iterable[TopicPartition], to: ShareResetTo
) -> dict[TopicPartition, PlannedOffset]:
    """Return the start offsets that a reset of a share group would store. This method stores nothing.

    If `to` is a time after the last record of a partition, the new start offset is the log end offset. Needs Kafka 4.1.
    """
    wanted = list_of_partitions(partitions)
    shares = list_share_offsets(brokers, group)
    starts = {partition: shares[partition].start_offset if partition in shares else None for partition in wanted}
    return _plan(brokers, group, starts, to)


def _plan(
    brokers: Brokers, group: str, old: Mapping[TopicPartition, int | None], to: ResetTo
) -> dict[TopicPartition, PlannedOffset]:
    """Return the new offset of each partition. `old` contains the group's offsets before the reset."""
    wanted = list(old)
    start = _offsets(brokers, dict.fromkeys(wanted, "earliest"))
    end = _offsets(brokers, dict.fromkeys(wanted, "latest"))
    at = _offsets(brokers, dict.fromkeys(wanted, to.timestamp)) if isinstance(to, AtTime) else {}
    planned = {}
    for partition, before in old.items():
        if partition in at:
            offset = end[partition] if at[partition] < 0 else at[partition]
        else:
            offset = _target(group, partition, to, before, start[partition], end[partition])
        clipped = min(max(offset, start[partition]), end[partition])
        planned[partition] = PlannedOffset(before, clipped, clipped != offset)
    return planned


def _offsets(brokers: Brokers, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
    return {partition: raised(found).offset for partition, found in list_offsets(brokers, specs).items()}


def _timestamps(brokers: Brokers, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return, for each partition, the timestamp of the first record at or after the given offset.

    If a partition has no such record, or the record has no timestamp, the result does not contain the partition.
    """
    by_leader: dict[Node, dict[TopicPartition, int]] = {}
    for partition, offset in offsets.items():
        by_leader.setdefault(brokers.cluster.leader(partition), {})[partition] = offset
    found: dict[TopicPartition, int] = {}
    for leader, wanted in by_leader.items():
        with SimpleConsumer(leader.host, leader.port, timeout=brokers.request_timeout) as consumer:
            while wanted:
                wanted = _next_records(consumer, wanted, found)
    return found


def _next_records(
    consumer: SimpleConsumer, wanted: Mapping[TopicPartition, int], found: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Search up to 100 partitions for the first record at or after an offset.

    The mapping `wanted` contains, for each partition, the offset at which the search begins. The search ends at a
    record, at an error, or at the end of the log. If the record has a timestamp, the function stores the timestamp
    in the dict `found`.

    Return the partitions in which the search must continue, and the offsets at which it continues. The caller
    repeats the call until the result is empty.

    Each call makes progress, so the result is empty in the end. A call sends one Fetch request. If the first
    partition of the request has data, the broker always returns some of the data. The search in this partition
    therefore ends, or continues at a higher offset.
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
        # Search this partition again if only control records arrived. Also search it again if its index `number` is
        # above 0: earlier partitions may have filled the response.
        elif answer.next_offset > offset or number:
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
