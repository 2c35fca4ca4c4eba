"""Where a query begins and where it ends: from words, JSON and times to an offset for each partition.

The forms are those of Spark's Kafka connector::

    earliest, latest                            all partitions alike
    {"weather": {"0": 23, "1": -2}}             by partition; -2 is earliest, -1 latest
    1700000000000                               startingTimestamp: the first record at or after that time (ms)
    {"weather": {"0": 1700000000000}}           startingOffsetsByTimestamp

Offsets in a streaming query's checkpoint have the same JSON shape, `{"weather": {"0": 23, "1": 45}}`: the next offset
to read in each partition.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.fetcher import is_final
from hmb.client.consuming.subscription import Subscription
from hmb.client.metadata import Cluster, Topic
from hmb.client.offsets import NOT_FOUND, list_offsets
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

if TYPE_CHECKING:
    from hmb.spark.options import SourceOptions

EVERY_TOPIC = Subscription()  # but Kafka's internal ones
RETRY_PAUSE = 0.2

T = TypeVar("T")
TimeStrategy = Literal["error", "latest"]
ByPartition = dict[str, dict[int, int]]
Offsets = dict[TopicPartition, int]


@dataclass(frozen=True)
class Times:
    """A time for all partitions, or one for each, in ms since 1970."""

    of_all: int | None = None
    by_partition: ByPartition | None = None

    def of(self, partition: TopicPartition) -> int | None:
        if self.by_partition is None:
            return self.of_all
        return self.by_partition.get(partition.topic, {}).get(partition.partition)


Spec = Literal["earliest", "latest"] | ByPartition | Times


def parse_spec(text: str) -> Spec:
    """ "earliest", "latest", or JSON.  Raises ValueError."""
    word = text.strip().lower()
    if word == "earliest":
        return "earliest"
    if word == "latest":
        return "latest"
    return _by_partition(text, least=EARLIEST)


def parse_times(text: str, *, by_partition: bool = False) -> Times:
    """A time, or JSON with a time for each partition.  Raises ValueError."""
    if by_partition:
        return Times(by_partition=_by_partition(text, least=0))
    if not text.strip().isdecimal():
        raise ValueError(f"{text!r} is no time in milliseconds since 1970")
    return Times(int(text))


def parse_assign(text: str) -> dict[str, tuple[int, ...]]:
    """{"topic": [0, 1]}.  Raises ValueError."""
    wrong = f'expected e.g. {{"topicA":[0,1],"topicB":[2,4]}}, got {text}'
    found = _json(text, wrong)
    for topic, numbers in found.items():
        if not isinstance(numbers, list) or not numbers or not all(_is_number(each, 0) for each in numbers):
            raise ValueError(f"{wrong} (topic {topic!r})")
    return {topic: tuple(numbers) for topic, numbers in found.items()}


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As they stand in a checkpoint."""
    shape: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        shape.setdefault(topic, {})[str(partition)] = offset
    return shape


def from_json(shape: Mapping[str, Mapping[str, int]]) -> Offsets:
    """The same the other way.  ValueError for what another kind of source has left in a checkpoint."""
    if not isinstance(shape, dict) or not all(isinstance(each, dict) for each in shape.values()):
        wrong = f'offsets in a checkpoint are of topics, {{"weather": {{"0": 23}}}}, not {json.dumps(shape)}'
        raise ValueError(f"{wrong}: is this the checkpoint of another query?")
    return {
        TopicPartition(topic, int(number)): offset
        for topic, partitions in shape.items()
        for number, offset in partitions.items()
    }


def patiently(options: SourceOptions, action: Callable[[], T]) -> T:
    """Ask the brokers something, again and again where time may help: a broker may be starting anew.

    How long is settled by kafka.default.api.timeout.ms, as for what `hmb.Consumer` asks.
    """
    deadline = time.monotonic() + options.retry_for
    while True:
        try:
            return action()
        except (ConnectionFailed, KafkaError) as error:
            is_unknown = isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if is_unknown or is_final(error) or time.monotonic() >= deadline:
                raise
        time.sleep(RETRY_PAUSE)


def partitions_of(
    cluster: Cluster, options: SourceOptions, *, known: Collection[TopicPartition] = ()
) -> list[TopicPartition]:
    """The partitions that a query reads, as of now; of the `known` ones some may be gone.

    Raises KafkaError, ConnectionFailed, ValueError.
    """
    if options.assign is not None:
        wanted = sorted(TopicPartition(topic, number) for topic, each in options.assign.items() for number in each)
        there = {it for topic in _topics(cluster, options.assign, known) for it in _partitions(topic)}
        for partition in wanted:
            if partition not in there and partition not in known:
                raise ValueError(f"option 'assign': {partition} does not exist")
        return [partition for partition in wanted if partition in there]
    if options.pattern is None:
        topics = _topics(cluster, options.subscribe, known)
    else:  # as there, somewhere in the name
        wanted_name = re.compile(options.pattern)
        topics = [it for it in cluster.topics() if EVERY_TOPIC.wants(it) and wanted_name.search(it.name)]
    return sorted(partition for topic in topics for partition in _partitions(topic))


def _topics(cluster: Cluster, names: Iterable[str], known: Collection[TopicPartition]) -> list[Topic]:
    """Asked anew, for partitions may have been added; without those that were there once and are no more."""
    found, may_be_gone = [], {partition.topic for partition in known}
    for name in names:
        cluster.forget(name)
        try:
            found.append(cluster.topic(name))
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or name not in may_be_gone:
                raise
    return found


def _partitions(topic: Topic) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for number in topic.leaders]


def ends(cluster: Cluster, partitions: Iterable[TopicPartition], isolation_level: int) -> tuple[Offsets, Offsets]:
    """Of each partition the first offset that there is, and the one after the last, from whoever leads it now."""
    partitions = list(partitions)
    for topic in {partition.topic for partition in partitions}:
        cluster.forget(topic)
    return (
        list_offsets(cluster, partitions, EARLIEST, isolation_level),
        list_offsets(cluster, partitions, LATEST, isolation_level),
    )


def resolve(
    cluster: Cluster,
    spec: Spec,
    partitions: list[TopicPartition],
    isolation_level: int,
    *,
    option: str,
    when_late: TimeStrategy,
) -> Offsets:
    """The offset of each partition; ValueError, which names the option, where the spec does not fit."""
    first, end = ends(cluster, partitions, isolation_level)
    if spec == "earliest":
        return first
    if spec == "latest":
        return end
    if isinstance(spec, Times):
        return _at_times(cluster, spec, partitions, end, isolation_level, option, when_late)
    said = {TopicPartition(topic, number): offset for topic, each in spec.items() for number, offset in each.items()}
    _check_complete(said, partitions, option)
    return {it: {EARLIEST: first[it], LATEST: end[it]}.get(said[it], said[it]) for it in partitions}


def _at_times(
    cluster: Cluster,
    times: Times,
    partitions: list[TopicPartition],
    end: Offsets,
    isolation_level: int,
    option: str,
    when_late: TimeStrategy,
) -> Offsets:
    wanted = {it: time for it in partitions if (time := times.of(it)) is not None}
    if times.by_partition is not None:
        said = [TopicPartition(topic, number) for topic, each in times.by_partition.items() for number in each]
        _check_complete(said, partitions, option)
    found: Offsets = {}
    for time in set(wanted.values()):
        found |= list_offsets(cluster, [it for it in wanted if wanted[it] == time], time, isolation_level)
    for partition, offset in found.items():
        if offset == NOT_FOUND:
            if when_late == "error":
                what = f"no record of {partition} is as young as {wanted[partition]}"
                raise ValueError(f"option {option!r}: {what}; startingOffsetsByTimestampStrategy=latest takes the end")
            found[partition] = end[partition]
    return found


def _check_complete(said: Iterable[TopicPartition], partitions: list[TopicPartition], option: str) -> None:
    missing, strange = sorted(set(partitions) - set(said)), sorted(set(said) - set(partitions))
    if missing or strange:
        lists = [
            f"{what} {', '.join(map(str, each))}"
            for what, each in (("missing", missing), ("not read", strange))
            if each
        ]
        raise ValueError(
            f"option {option!r} must specify all partitions that are read: {'; '.join(lists)}. "
            "Use -1 for latest, -2 for earliest."
        )


def _by_partition(text: str, least: int) -> ByPartition:
    wrong = f'expected e.g. {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {text}'
    found = _json(text, wrong)
    for partitions in found.values():
        if not isinstance(partitions, dict) or not partitions:
            raise ValueError(wrong)
        if not all(number.isdecimal() and _is_number(offset, least) for number, offset in partitions.items()):
            raise ValueError(wrong)
    return {topic: {int(number): offset for number, offset in each.items()} for topic, each in found.items()}


def _json(text: str, wrong: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{wrong} ({error})") from error
    if not isinstance(found, dict) or not found:
        raise ValueError(wrong)
    return found


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
