"""Parse the options for the *bounds* of a query: where the query starts and where it ends.

A bound has one of these forms, as in Spark's Kafka connector:
    earliest, latest                      the same bound for all partitions
    {"weather": {"0": 23, "1": -2}}       an offset for each partition; -2 is earliest, -1 is latest
    1700000000000                         startingTimestamp: the first record at or after this time (ms since 1970)
    {"weather": {"0": 1700000000000}}     startingOffsetsByTimestamp: one time for each partition

This module only parses bounds, without a broker. The module `offsets` asks the brokers which offsets a bound such as
"latest" means.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from hmb.defaults import OFFSET_NAMES, OffsetName
from hmb.protocol.enums import EARLIEST
from hmb.protocol.topics import TopicPartition

TimeStrategy = Literal["error", "latest"]
ByPartition = dict[str, dict[int, int]]


@dataclass(frozen=True)
class Times:
    """One time for all partitions, or one time for each partition, in ms since 1970."""

    of_all: int | None = None
    by_partition: ByPartition | None = None

    def of(self, partition: TopicPartition) -> int | None:
        if self.by_partition is None:
            return self.of_all
        return self.by_partition.get(partition.topic, {}).get(partition.partition)


Bound = OffsetName | ByPartition | Times


def parse_bound(text: str) -> Bound:
    """Parse "earliest", "latest", or JSON with an offset for each partition. Raises ValueError."""
    for name in OFFSET_NAMES:
        if text.strip().lower() == name:
            return name
    return _by_partition(text, least=EARLIEST)


def parse_times(text: str, *, by_partition: bool = False) -> Times:
    """Parse a time, or JSON with a time for each partition. Raises ValueError."""
    if by_partition:
        return Times(by_partition=_by_partition(text, least=0))
    if not text.strip().isdecimal():
        raise ValueError(f"{text!r} is not a time in milliseconds since 1970")
    return Times(int(text))


def parse_assign(text: str) -> dict[str, tuple[int, ...]]:
    """Parse the option `assign`, such as `{"topic": [0, 1]}`. Raises ValueError."""
    wrong = f'expected e.g. {{"topicA":[0,1],"topicB":[2,4]}}, got {text}'
    found = _json(text, wrong)
    for topic, numbers in found.items():
        if not isinstance(numbers, list) or not numbers or not all(_is_number(number, 0) for number in numbers):
            raise ValueError(f"{wrong} (topic {topic!r})")
    return {topic: tuple(numbers) for topic, numbers in found.items()}


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
