"""Offsets: how a program says where to begin and where to stop, and where the log has what it says.

    "earliest", "latest"    the first offset that there is, and the one after the last record
    1234                    that offset
    -10                     so many before the end
    FromStart(10)           so many after the first
    AtTime(1700000000000)   the first record at or after that time (ms since 1970); the end if there is none

Only a number from 0 on is an offset by itself; for all others the leaders are asked, with ListOffsets. It is one
question with magic timestamps: -2 is the first offset, -1 the end, and any other number a time. With read_committed the
end is the *last stable offset*, behind which a transaction may still be open.

Brokers before 0.10.1 have only version 0, which looks at segments, not at records: there AtTime gives the beginning
of the last segment that was begun before that time, so that reading starts with up to a segment of older records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node
from hmb.protocol.enums import EARLIEST, LATEST, IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.topics import TopicPartition
from hmb.records.record import MAX_INT64

NOT_FOUND = -1  # no record is that young
FIRST_VERSION_OF_TIMES = ListOffsetsResponse.first_version("topics.partitions.timestamp")
FIRST_VERSION_OF_ISOLATION = ListOffsetsRequest.first_version("isolation_level")

IsolationLevelName = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS = {level.name.lower(): level for level in IsolationLevel}

PartitionRequest = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
PartitionResponse = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after a time in ms since 1970."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class FromStart:
    """So many offsets after the first one."""

    count: int


Offset = Literal["earliest", "latest"] | int | AtTime | FromStart
Until = Literal["end"] | int | AtTime | None


def check_time(timestamp: object) -> None:
    """TypeError for a datetime, which may mean one of several times."""
    if isinstance(timestamp, datetime):
        raise TypeError("a time is in ms since 1970: int(when.timestamp() * 1000) for a datetime")


def check_offset(offset: object) -> None:
    """ValueError for what is no `Offset`."""
    check_time(offset.timestamp if isinstance(offset, AtTime) else offset)
    if offset in ("earliest", "latest"):
        return
    number = offset.timestamp if isinstance(offset, AtTime) else offset
    number = number.count if isinstance(number, FromStart) else number
    if isinstance(number, bool) or not isinstance(number, int) or not -MAX_INT64 <= number <= MAX_INT64:
        raise ValueError(f'an offset is "earliest", "latest" or a whole number of 64 bits, not {offset!r}')
    if not isinstance(offset, int) and number < 0:
        raise ValueError(f"{offset!r} is before everything: its number must be 0 or more")


def check_until(until: object) -> None:
    """ValueError for what is no `Until`."""
    if until in ("end", None):
        return
    if isinstance(until, FromStart | str) or (isinstance(until, int) and (isinstance(until, bool) or until < 0)):
        raise ValueError(f'until is "end" or None, an offset or a time, not {until!r}')
    check_offset(until)


def check_isolation_level(isolation_level: object) -> None:
    """ValueError for what is no `IsolationLevelName`."""
    if isolation_level not in ISOLATION_LEVELS:
        raise ValueError(f"an isolation level is one of {', '.join(ISOLATION_LEVELS)}, not {isolation_level!r}")


def resolve(
    cluster: Cluster, offsets: Mapping[TopicPartition, Offset], isolation_level: int = 0
) -> dict[TopicPartition, int]:
    """The numbers of these offsets; all partitions of one kind are asked about in one request a leader."""
    kinds = {partition: _timestamps(offset) for partition, offset in offsets.items()}
    found: dict[int, dict[TopicPartition, int]] = {LATEST: {}, EARLIEST: {}}
    for timestamp in {timestamp for kind in kinds.values() for timestamp in kind}:
        asked = [partition for partition, kind in kinds.items() if timestamp in kind]
        found[timestamp] = list_offsets(cluster, asked, timestamp, isolation_level)
    first, ends = found[EARLIEST], found[LATEST]
    too_late = [
        partition
        for partition, offset in offsets.items()
        if isinstance(offset, AtTime) and found[offset.timestamp][partition] == NOT_FOUND
    ]
    ends.update(list_offsets(cluster, too_late, LATEST, isolation_level))

    def number(partition: TopicPartition, offset: Offset) -> int:
        match offset:
            case "earliest":
                return first[partition]
            case "latest":
                return ends[partition]
            case AtTime(timestamp):
                at = found[timestamp][partition]
                return ends[partition] if at == NOT_FOUND else at
            case FromStart(count):
                return min(first[partition] + count, ends[partition])
            case _:
                return offset if offset >= 0 else max(first[partition], ends[partition] + offset)

    return {partition: number(partition, offset) for partition, offset in offsets.items()}


def _timestamps(offset: Offset) -> tuple[int, ...]:
    """Which ListOffsets have to be asked to know an offset's number."""
    match offset:
        case "earliest":
            return (EARLIEST,)
        case "latest":
            return (LATEST,)
        case AtTime(timestamp):
            return (timestamp,)
        case FromStart():
            return (EARLIEST, LATEST)
        case _:
            return () if offset >= 0 else (EARLIEST, LATEST)


def list_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], timestamp: int, isolation_level: int = 0
) -> dict[TopicPartition, int]:
    """The offset of a timestamp, or of EARLIEST or LATEST, in each partition; KafkaError for the first that fails.

    NOT_FOUND (-1) where no record is that young; never from version 0, which cannot tell.
    """
    by_leader: dict[Node, list[TopicPartition]] = {}
    for partition in partitions:
        by_leader.setdefault(cluster.leader(partition), []).append(partition)
    offsets: dict[TopicPartition, int] = {}
    for leader, asked in by_leader.items():
        with cluster.connect(leader) as connection:
            version = connection.version_of(ListOffsetsRequest)
            timestamps = dict.fromkeys(asked, timestamp)
            request = offsets_request(timestamps, isolation_level if version >= FIRST_VERSION_OF_ISOLATION else 0)
            response: ListOffsetsResponse = connection.send(request, version)
        for topic in response.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                offsets[partition] = _offset(partition, answer, version)
        for partition in asked:
            if partition not in offsets:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{partition}: the broker did not answer for it")
        if version < FIRST_VERSION_OF_TIMES and timestamp >= 0:  # no segment is that old: all there is may be younger
            younger = [partition for partition in asked if offsets[partition] == NOT_FOUND]
            offsets.update(list_offsets(cluster, younger, EARLIEST))
    return offsets


def offsets_request(timestamps: Mapping[TopicPartition, int], isolation_level: int) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for (name, partition), timestamp in timestamps.items():
        topic = topics.setdefault(name, ListOffsetsRequest.ListOffsetsTopic(name=name))
        topic.partitions.append(PartitionRequest(partition_index=partition, timestamp=timestamp))
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=list(topics.values()))


def _offset(partition: TopicPartition, answer: PartitionResponse, version: int) -> int:
    if answer.error_code:
        raise answered_error(partition, answer.error_code)
    if version < FIRST_VERSION_OF_TIMES:
        return answer.old_style_offsets[0] if answer.old_style_offsets else NOT_FOUND
    return answer.offset
