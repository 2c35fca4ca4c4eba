"""Groupings: if a bolt or a sink runs as several instances, its grouping decides which instance receives a tuple.

For example, a bolt counts hashtags and runs as three instances: `count-0`, `count-1` and `count-2`. Its *grouping
function* takes a tuple and returns the key of the tuple, here the hashtag. The hash of the key modulo 3 is the number
of the instance that receives the tuple. All tuples with one hashtag therefore reach the same instance, and the count of
this hashtag is complete.

A bolt can store a separate value for each key, for example a count for each hashtag. The grouping must then send all
tuples with the same key to the same instance of the bolt. Suppose that two instances receive tuples with #love. Each
instance then counts only some of these tuples, and sends a count of #love that is too low.

`Bolt.keyed` and `Bolt.windowed` make a bolt that has one state for each key. By default, such a bolt uses the same
function for its keys and for its grouping. All tuples with the same key therefore reach the same instance. But the
topology can declare another grouping, which may send tuples with the same key to different instances. Then no instance
has the complete state of the key. The function `hailstorm.check` reports this mistake.

The sender and the receiver of a tuple may be different processes that were started at different times. The hash of a
key must be the same in all processes. Python's `hash` of a string is salted, and therefore differs from process to
process. Hailstorm uses the CRC-32 of the encoded key as the hash instead.

Source: Hailstorm, chapter 3, "Hailstorm Overview" (grouping functions).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from hmb.hailstorm.codec import encode

Grouping = Callable[[Any], Any]  # takes a tuple; returns its key
# An encoded bytes object is a prefix, followed by the bytes. The prefix depends only on the number of bytes.
# BYTES_PREFIXES[n] is the CRC-32 of the prefix for n bytes. `instance_of` continues this CRC with the key, so it
# does not have to encode the key.
BYTES_PREFIXES = [crc32(encode(bytes(length))[: -length or None]) for length in range(64)]
REMEMBERED_KEYS = 100_000  # A router remembers at most this many keys. When it is full, it forgets all keys.


def first(item: Any) -> Any:
    """Return the first element of a tuple: the key of a (key, value) pair."""
    return item[0]


def whole(item: Any) -> Any:
    """Return the tuple itself. With this function as the grouping, the whole tuple is the key."""
    return item


def instance_of(key: Any, parallelism: int) -> int:
    """Return the number of the instance that receives tuples with this key. The first instance has the number 0."""
    if type(key) is bytes and len(key) < len(BYTES_PREFIXES):
        return crc32(key, BYTES_PREFIXES[len(key)]) % parallelism
    return crc32(encode(key)) % parallelism


class Router:
    """Selects the instance of a node that receives a tuple. Tuples with the same key go to the same instance.

    The router remembers the instances of recent keys. A look-up of a remembered key takes 0.1 us, but hashing a key
    takes 0.4 to 2 us.
    """

    def __init__(self, group: Grouping, parallelism: int) -> None:
        self._group, self._parallelism = group, parallelism
        self._instances: dict[Any, int] = {}

    def instances(self, tuples: Sequence[Any]) -> list[int]:
        """Return, for each tuple, the number of the instance that receives this tuple."""
        known, group, numbers = self._instances, self._group, []
        for item in tuples:
            key = group(item)
            try:
                number = known.get(key)
            except TypeError:  # A key that Python cannot hash, for example a list, cannot be remembered in the dict.
                numbers.append(instance_of(key, self._parallelism))
                continue
            if number is None:
                number = self._remember(key)
            numbers.append(number)
        return numbers

    def _remember(self, key: Any) -> int:
        number = instance_of(key, self._parallelism)
        if len(self._instances) >= REMEMBERED_KEYS:
            self._instances.clear()
        self._instances[key] = number
        return number
