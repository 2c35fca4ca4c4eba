"""Checks of arguments that contain several items. The client makes these checks before it sends a request.

Python accepts many wrong arguments without an error. A loop over a str yields its letters, so `delete_topics("am")`
would delete the topics "a" and "m" instead of the topic "am". A loop over a dict yields only its keys, so the values
would be lost. For all these arguments, the checks raise an error. Each error message contains an example of a correct
argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from hmb.protocol.topics import TopicPartition

T = TypeVar("T")


def list_of(name: str, given: Iterable[T], kinds: type | tuple[type, ...], example: str) -> list[T]:
    """Return the items of the argument `given` as a list.

    Raises TypeError if an item has none of the types in `kinds`. The error message contains `name`, the name of the
    argument, and `example`, a correct argument.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list, for example {example}, not {given!r}")
    found = list(given)
    for each in found:
        if not isinstance(each, kinds):
            raise TypeError(f"{name}: {each!r} has the wrong type; a correct example is {example}")
    return found


def list_of_names(name: str, given: Iterable[str], example: str = '["a", "b"]') -> list[str]:
    if isinstance(given, Mapping):
        raise TypeError(f"{name} must be a list, for example {example}, not {given!r}")
    return list_of(name, given, str, example)


def mapped(name: str, given: Mapping[Any, T], example: str) -> dict[Any, T]:
    """Convert the argument `given` to a dict. Raises TypeError if `given` is not a mapping.

    The error message contains `name`, the name of the argument, and `example`, a correct argument.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a dict, for example {example}, not {given!r}")
    return dict(given)


def list_of_partitions(given: Iterable[TopicPartition]) -> list[TopicPartition]:
    if isinstance(given, TopicPartition):
        raise TypeError(f"the argument must be a list of partitions, for example [{given!r}], not {given!r}")
    return list_of("partitions", given, TopicPartition, '[TopicPartition("t", 0)]')


def by_partition(name: str, given: Mapping[TopicPartition, T], value: str) -> dict[TopicPartition, T]:
    """Convert the argument `given` to a dict.

    Raises TypeError if `given` is not a mapping, or if a key in `given` is not a `TopicPartition`.

    If `given` is not a mapping, the error message shows an example of a correct dict. The string `value` is the
    Python code of the value in the example. With `value="5"`, the example is `{TopicPartition("t", 0): 5}`.
    """
    found = mapped(name, given, f'{{TopicPartition("t", 0): {value}}}')
    list_of_partitions(found)
    return found


def check_partition(partition: object) -> None:
    """Raise TypeError if the argument is not a `TopicPartition`."""
    if not isinstance(partition, TopicPartition):
        like = "TopicPartition(topic, number)"
        if isinstance(partition, tuple) and len(partition) == 2:
            like = f"TopicPartition({partition[0]!r}, {partition[1]!r})"
        raise TypeError(f"a partition must be {like}, not {partition!r}")
