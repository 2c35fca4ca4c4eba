"""A cache of values that are computed from a name, for example the hash of a group id.

A group commits offsets again and again. For each commit, the coordinator needs values that it computes from the
group id, such as its hash. A cache stores these values. A client chooses the group id, which can have up to
32,767 bytes. A cache with 10,000 group ids of this length would use more than 300 MB. This cache therefore
stores values only for names of at most `LONGEST_NAME` characters. For a longer name, the coordinator computes
the value at each request.

For example, a cache with 10,000 names of at most 256 characters uses only a few megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Concatenate, ParamSpec, TypeVar

LONGEST_NAME = 256  # characters
P = ParamSpec("P")
R = TypeVar("R")


def cached_by_name(
    entries: int,
) -> Callable[[Callable[Concatenate[str, P], R]], Callable[Concatenate[str, P], R]]:
    """Return a decorator that adds a cache to a function whose first argument is a name.

    The cache stores at most `entries` results. If the cache is full, a new result replaces the least recently used
    one. The cache stores no result for a name with more than `LONGEST_NAME` characters.
    """

    def decorate(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
        known = lru_cache(entries)(function)

        def call(name: str, /, *others: P.args, **named: P.kwargs) -> R:
            if len(name) > LONGEST_NAME:
                return function(name, *others, **named)
            return known(name, *others, **named)  # type: ignore[arg-type]

        return call

    return decorate
