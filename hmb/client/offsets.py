"""Finds the offset that an application describes, for example as "earliest" or as a time.

An application can name an offset in these ways:
    "earliest", "latest"    the first offset of the log, and the offset after the last record
    1234                    the offset 1234
    -10                     10 offsets before the end of the log
    FromStart(10)           10 offsets after the first offset of the log
    AtTime(1700000000000)   the first record at or after this time (ms since 1970); if all records are older, the end

If the application passes a number that is not negative, this number is the offset, and the client sends no request. In
all other cases, for example "earliest" or `AtTime`, the client sends a ListOffsets request to the leader of the
partition. A ListOffsets request contains a timestamp for each partition, and the response contains the offset of the
first record at or after this timestamp.

Two timestamps in a ListOffsets request are special: -2 means the first offset of the log, and -1 means the end of the
log. For a `read_committed` consumer, the end is the *last stable offset*: the first offset of the oldest open
transaction, or the high watermark if no transaction is open.

Brokers older than Kafka 0.10.1 support only version 0 of ListOffsets. They store no index of timestamps, but
know when each segment file was last changed. For a time (`AtTime`), they return the first offset of the last
segment that was not changed after this time.

For example, segment A was last changed at 10:30, and the next segment at 11:30. If a client asks for 11:00, the
broker returns the first offset of A. The client first reads some records that are older than 11:00.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.metadata import Cluster, Node
from hmb.defaults import OFFSET_NAMES, OffsetName
from hmb.protocol.enums import CONSUMER_REPLICA_ID, EARLIEST, INT64_MAX, ISOLATION_LEVELS, LATEST, NO_LEADER_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import NO_TIMESTAMP

NOT_FOUND = -1  # A broker returns this offset if all records are older than the requested time.
FIRST_VERSION_OF_TIMES = ListOffsetsResponse.first_version("topics.partitions.timestamp")
FIRST_VERSION_OF_ISOLATION = ListOffsetsRequest.first_version("isolation_level")

PartitionRequest = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
PartitionResponse = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse


@dataclass(frozen=True, slots=True)
class AtTime:
    """The offset of the first record at or after a time. The time is in ms since 1970."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class FromStart:
    """The offset that is `count` offsets after the first offset of the log, but at most the end of the log."""

    count: int


class ListedOffset(NamedTuple):
    """An offset in a log, with the timestamp (ms) and the leader epoch of the record at this offset.

    If all records are older than the requested time, `offset` is -1. An unknown `timestamp` or `leader_epoch` is
    -1. For example, the timestamp of the end of the log is unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


Offset = OffsetName | int | AtTime | FromStart
Until = Literal["end"] | int | AtTime | None


def check_time(timestamp: object) -> None:
    """Raise TypeError if `timestamp` is a datetime instead of a number of ms since 1970."""
    if isinstance(timestamp, datetime):
        raise TypeError("a time is a number of ms since 1970; for a datetime, write int(when.timestamp() * 1000)")


def check_offset(offset: object) -> None:
    """Raise ValueError if the argument is not a valid `Offset`."""
    check_time(offset.timestamp if isinstance(offset, AtTime) else offset)
    if offset in OFFSET_NAMES:
        return
    number = offset.timestamp if isinstance(offset, AtTime) else offset
    number = number.count if isinstance(number, FromStart) else number
    if isinstance(number, bool) or not isinstance(number, int) or not -INT64_MAX <= number <= INT64_MAX:
        raise ValueError(f'an offset must be "earliest", "latest" or a whole number of 64 bits, not {offset!r}')
    if not isinstance(offset, int) and number < 0:
        raise ValueError(f"{offset!r} is not a valid offset: the number in AtTime or FromStart must be 0 or more")


def check_until(until: object) -> None:
    """Raise ValueError if the argument is not a valid `Until`."""
    if until in ("end", None):
        return
    if isinstance(until, FromStart | str) or (isinstance(until, int) and (isinstance(until, bool) or until < 0)):
        raise ValueError(f'until must be "end", None, AtTime(...) or an offset of 0 or more, not {until!r}')
    check_offset(until)


def check_isolation_level(isolation_level: object) -> None:
    """Raise ValueError if the argument is not the name of an isolation level."""
    if isolation_level not in ISOLATION_LEVELS:
        raise ValueError(f"an isolation level must be one of {', '.join(ISOLATION_LEVELS)}, not {isolation_level!r}")


def resolve(
    cluster: Cluster, offsets: Mapping[TopicPartition, Offset], isolation_level: int = 0
) -> dict[TopicPartition, int]:
    """Return each offset as a number. For example, "earliest" becomes the first offset of the log.

    For each timestamp, the function sends one ListOffsets request to each leader. Raises KafkaError if a partition has
    an error, and ConnectionFailed if a broker cannot be reached.
    """
    needed = {partition: _timestamps(offset) for partition, offset in offsets.items()}
    found: dict[int, dict[TopicPartition, int]] = {LATEST: {}, EARLIEST: {}}
    for timestamp in {timestamp for timestamps in needed.values() for timestamp in timestamps}:
        partitions = [partition for partition, timestamps in needed.items() if timestamp in timestamps]
        found[timestamp] = list_offsets(cluster, partitions, timestamp, isolation_level)
    first, ends = found[EARLIEST], found[LATEST]
    after_all_records = [
        partition
        for partition, offset in offsets.items()
        if isinstance(offset, AtTime) and found[offset.timestamp][partition] == NOT_FOUND
    ]
    ends.update(list_offsets(cluster, after_all_records, LATEST, isolation_level))

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
    """Return the timestamps for the ListOffsets requests that the client needs to convert `offset`.

    EARLIEST stands for the first offset of the log, and LATEST for the end of the log. For example, `FromStart(10)`
    needs both. If `offset` is a number of 0 or more, the client sends no request, so the result is empty.
    """
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
    """Return the offset of the first record at or after `timestamp`, for each partition.

    `timestamp` is in ms since 1970, or EARLIEST (the first offset of the log), or LATEST (the end of the log). If
    all records are older, the offset is NOT_FOUND (-1). Raises KafkaError for the first partition with an error,
    and ConnectionFailed if a broker cannot be reached.

    A broker older than Kafka 0.10.1 only knows when each segment file was last changed. For a time in ms, the
    result is then the first offset of a segment or the end of the log, never NOT_FOUND.
    """
    by_leader: dict[Node, list[TopicPartition]] = {}
    for partition in partitions:
        by_leader.setdefault(cluster.leader(partition), []).append(partition)
    offsets: dict[TopicPartition, int] = {}
    for leader, led in by_leader.items():
        with cluster.connect(leader) as connection:
            version = connection.version_of(ListOffsetsRequest)
            found = request_offsets(connection, dict.fromkeys(led, timestamp), isolation_level)
        for partition in led:
            if partition not in found:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"{partition} is missing in the response of the broker"
                )
            listed = found[partition]
            if isinstance(listed, KafkaError):
                raise listed
            offsets[partition] = listed.offset
        # In version 0 of ListOffsets, NOT_FOUND means that all segment files were changed after `timestamp`. The oldest
        # file can contain the wanted record, so use the first offset of the log.
        if version < FIRST_VERSION_OF_TIMES and timestamp >= 0:
            newer = [partition for partition in led if offsets[partition] == NOT_FOUND]
            offsets.update(list_offsets(cluster, newer, EARLIEST))
    return offsets


def request_offsets(
    connection: Connection, timestamps: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int = 0
) -> dict[TopicPartition, ListedOffset | KafkaError]:
    """Send one ListOffsets request to a leader. Return the offset or the error of each partition.

    `timestamps` maps each partition to a time in ms since 1970, or to EARLIEST or LATEST. If the broker is older
    than Kafka 0.11, it does not support isolation levels, and the function ignores `isolation_level`.
    """
    version = connection.version_of(ListOffsetsRequest)
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for (name, partition), timestamp in timestamps.items():
        topic = topics.setdefault(name, ListOffsetsRequest.ListOffsetsTopic(name=name))
        topic.partitions.append(PartitionRequest(partition_index=partition, timestamp=timestamp))
    request = ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA_ID,
        isolation_level=isolation_level if version >= FIRST_VERSION_OF_ISOLATION else 0,
        topics=list(topics.values()),
        timeout_ms=timeout_ms,
    )
    response: ListOffsetsResponse = connection.send(request, version)
    return {
        (of := TopicPartition(listed.name, it.partition_index)): _listed_offset(of, it, version)
        for listed in response.topics
        for it in listed.partitions
    }


def _listed_offset(partition: TopicPartition, response: PartitionResponse, version: int) -> ListedOffset | KafkaError:
    if response.error_code:
        return response_error(partition, response.error_code)
    if version < FIRST_VERSION_OF_TIMES:
        return ListedOffset(next(iter(response.old_style_offsets), NOT_FOUND), NO_TIMESTAMP, NO_LEADER_EPOCH)
    return ListedOffset(response.offset, response.timestamp, response.leader_epoch)
