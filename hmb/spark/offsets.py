"""Find where a query starts and ends: one start offset and one end offset for each partition.

The function `partitions_of` finds the partitions that a query reads. The function `resolve` asks the brokers which
offset a bound (the start or the end of the query) means in each partition. For example, the partition `weather-0`
contains the offsets 100 to 499. In this partition, the bound "earliest" means offset 100. The bound "latest" means
offset 500, which is the offset of the next record.

The checkpoint of a streaming query stores offsets as JSON, in the same form as the options: `{"weather": {"0": 23, "1":
45}}`. In this example, the query next reads offset 23 of partition 0 and offset 45 of partition 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, TypeVar

from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.partition_errors import is_final, is_unknown_topic
from hmb.client.consuming.subscription import Subscription
from hmb.client.metadata import Cluster, TopicMetadata
from hmb.client.offsets import NOT_FOUND, list_offsets
from hmb.client.retries import with_retries
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.spark.bounds import Bound, Times, TimeStrategy
from hmb.spark.options import SourceOptions

EVERY_TOPIC = Subscription()  # matches every topic except Kafka's internal ones

T = TypeVar("T")
Offsets = dict[TopicPartition, int]


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Convert offsets to the form that a checkpoint has: `{topic: {partition number: offset}}`."""
    shape: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        shape.setdefault(topic, {})[str(partition)] = offset
    return shape


def from_json(shape: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return the offsets in a checkpoint. Raises ValueError if the checkpoint belongs to another data source."""
    if not isinstance(shape, dict) or not all(isinstance(each, dict) for each in shape.values()):
        wrong = f'offsets in a checkpoint have the form {{"weather": {{"0": 23}}}}, not {json.dumps(shape)}'
        raise ValueError(f"{wrong}: is this the checkpoint of another query?")
    return {
        TopicPartition(topic, int(number)): offset
        for topic, partitions in shape.items()
        for number, offset in partitions.items()
    }


class TopicDeleted(KafkaError):
    """The error for a topic that was deleted after its partitions were looked up.

    The query should look up its partitions again. The deleted partitions are then left out.
    """


def retrying(options: SourceOptions, action: Callable[[], T]) -> T:
    """Call `action`, and return its result. After a temporary error, call `action` again.

    If `action` still fails when the time limit kafka.default.api.timeout.ms has passed, raise the last error.
    Raise a permanent error at once, such as the error for an unknown topic.

    `TopicDeleted` is a temporary error: the next call of `action` looks up the partitions without the deleted
    topic.
    """

    def retry_for(error: ConnectionFailed | KafkaError) -> float:
        may_retry = isinstance(error, TopicDeleted) or not (is_unknown_topic(error) or is_final(error))
        return options.retry_for if may_retry else 0.0

    return with_retries(action, retry_for)


def partitions_of(
    cluster: Cluster, options: SourceOptions, *, known: Collection[TopicPartition] = ()
) -> list[TopicPartition]:
    """Return the partitions that a query reads now.

    `known` contains partitions that existed earlier. If a partition in `known` was deleted, leave it out.

    Raises ValueError if a partition in the option `assign` does not exist and is not in `known`. Also raises
    KafkaError and ConnectionFailed.
    """
    if options.assign is not None:
        wanted = sorted(TopicPartition(topic, number) for topic, each in options.assign.items() for number in each)
        topics = _topics(cluster, options.assign, known)
        existing = {partition for topic in topics for partition in _partitions(topic)}
        for partition in wanted:
            if partition not in existing and partition not in known:
                raise ValueError(f"option 'assign': {partition} does not exist")
        return [partition for partition in wanted if partition in existing]
    if options.pattern is None:
        topics = _topics(cluster, options.subscribe, known)
    else:  # As in Spark's Kafka connector, the pattern can match anywhere in the name.
        pattern = re.compile(options.pattern)
        topics = [topic for topic in cluster.topics() if EVERY_TOPIC.matches(topic) and pattern.search(topic.name)]
    return sorted(partition for topic in topics for partition in _partitions(topic))


def _topics(cluster: Cluster, names: Iterable[str], known: Collection[TopicPartition]) -> list[TopicMetadata]:
    """Fetch the newest metadata of the topics in `names`, because a topic can get new partitions.

    If a topic does not exist, but `known` contains one of its partitions, the topic was deleted. The function then
    leaves the topic out. If `known` has no partition of a missing topic, the function raises KafkaError.
    """
    found, may_be_deleted = [], {partition.topic for partition in known}
    for name in names:
        cluster.forget(name)
        try:
            found.append(cluster.topic(name))
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or name not in may_be_deleted:
                raise
    return found


def _partitions(topic: TopicMetadata) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for number in topic.leaders]


def ends(cluster: Cluster, partitions: Iterable[TopicPartition], isolation_level: int) -> tuple[Offsets, Offsets]:
    """Return the log start offset and the end offset of each partition.

    The end offset is the offset of the next record. With the isolation level `read_committed`, it is the last stable
    offset, which is at most the first offset of the oldest open transaction.
    """
    partitions = list(partitions)
    for topic in {partition.topic for partition in partitions}:
        cluster.forget(topic)
    return (
        list_offsets(cluster, partitions, EARLIEST, isolation_level),
        list_offsets(cluster, partitions, LATEST, isolation_level),
    )


def resolve(
    cluster: Cluster,
    bound: Bound,
    partitions: list[TopicPartition],
    isolation_level: int,
    *,
    side: Literal["starting", "ending"],
    if_no_record: TimeStrategy,
) -> Offsets:
    """Return the offset that `bound` means in each partition. `bound` is the start or the end of a query.

    - A time means the first record at or after this time. If a partition has no such record, the result depends on
      `if_no_record`. For "error", the function raises ValueError. For "latest", it returns the partition's end
      offset.
    - If `bound` contains a value for each partition, it must name exactly the partitions in `partitions`.
      Otherwise, the function raises ValueError.

    `side` is "starting" for the start of the query, and "ending" for its end. Error messages use it to name the
    wrong option, for example "startingOffsets".
    """
    first, end = ends(cluster, partitions, isolation_level)
    if bound == "earliest":
        return first
    if bound == "latest":
        return end
    if isinstance(bound, Times):
        option = f"{side}Timestamp" if bound.by_partition is None else f"{side}OffsetsByTimestamp"
        return _at_times(cluster, bound, partitions, end, isolation_level, option, if_no_record)
    given = {TopicPartition(topic, number): offset for topic, each in bound.items() for number, offset in each.items()}
    _check_complete(given, partitions, f"{side}Offsets")
    return {it: {EARLIEST: first[it], LATEST: end[it]}.get(given[it], given[it]) for it in partitions}


def _at_times(
    cluster: Cluster,
    times: Times,
    partitions: list[TopicPartition],
    end: Offsets,
    isolation_level: int,
    option: str,
    if_no_record: TimeStrategy,
) -> Offsets:
    wanted = {it: time for it in partitions if (time := times.of(it)) is not None}
    if times.by_partition is not None:
        given = [TopicPartition(topic, number) for topic, each in times.by_partition.items() for number in each]
        _check_complete(given, partitions, option)
    found: Offsets = {}
    for time in set(wanted.values()):
        found |= list_offsets(cluster, [it for it in wanted if wanted[it] == time], time, isolation_level)
    for partition, offset in found.items():
        if offset == NOT_FOUND:
            if if_no_record == "error":
                problem = f"{partition} has no record at or after the time {wanted[partition]}"
                fix = "startingOffsetsByTimestampStrategy=latest starts such a partition at its end"
                raise ValueError(f"option {option!r}: {problem}; {fix}")
            found[partition] = end[partition]
    return found


def _check_complete(given: Iterable[TopicPartition], partitions: list[TopicPartition], option: str) -> None:
    missing, unknown = sorted(set(partitions) - set(given)), sorted(set(given) - set(partitions))
    if missing or unknown:
        lists = [
            f"{problem} {', '.join(map(str, each))}"
            for problem, each in (("missing", missing), ("not read", unknown))
            if each
        ]
        raise ValueError(
            f"option {option!r} must specify all partitions that are read: {'; '.join(lists)}. "
            "Use -1 for latest, -2 for earliest."
        )
