"""What methods take that work on several things: checked before anything is sent.

A text is iterable, so that `delete_topics("am")` would be about the topics a and m; a dict is one, too, and would lose
its values. A partition is a `TopicPartition`, and not just a tuple of two, which may be anything. Who mixes these up
hears what to write.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from hmb.protocol.topics import TopicPartition

T = TypeVar("T")


def list_of(what: str, given: Iterable[T], kinds: type | tuple[type, ...], example: str) -> list[T]:
    """All that was given, each of these kinds; TypeError says what is to be written, by an example."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{what} are several, for example {example}, not {given!r}")
    found = list(given)
    for each in found:
        if not isinstance(each, kinds):
            raise TypeError(f"{what} are for example {example}: {each!r} is none")
    return found


def list_of_names(what: str, given: Iterable[str], example: str = '["a", "b"]') -> list[str]:
    if isinstance(given, Mapping):
        raise TypeError(f"{what} are a list, for example {example}, not {given!r}")
    return list_of(what, given, str, example)


def mapped(what: str, given: Mapping[Any, T], example: str) -> dict[Any, T]:
    """The mapping; TypeError for what is none."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} are a dict, for example {example}, not {given!r}")
    return dict(given)


def list_of_partitions(given: Iterable[TopicPartition]) -> list[TopicPartition]:
    if isinstance(given, TopicPartition):
        raise TypeError(f"partitions are several, for example [{given!r}]: put it in a list")
    return list_of("partitions", given, TopicPartition, '[TopicPartition("t", 0)]')


def by_partition(what: str, given: Mapping[TopicPartition, T], value: str) -> dict[TopicPartition, T]:
    """What was given for each partition; `value` is an example of it."""
    found = mapped(what, given, f'{{TopicPartition("t", 0): {value}}}')
    list_of_partitions(found)
    return found


def check_partition(partition: object) -> None:
    """TypeError for what is no partition."""
    if not isinstance(partition, TopicPartition):
        like = "TopicPartition(topic, number)"
        if isinstance(partition, tuple) and len(partition) == 2:
            like = f"TopicPartition({partition[0]!r}, {partition[1]!r})"
        raise TypeError(f"a partition is {like}, not {partition!r}")
