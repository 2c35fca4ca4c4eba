"""A cache of values that are computed from a name, for example the hash of a group id.

A group commits many times, so the coordinator needs the same values for each request. A client chooses the names, and a
name may have 32,767 bytes. A cache that counts only entries could therefore use hundreds of megabytes. This cache keeps
only names of at most `LONGEST_NAME` characters. The values of longer names are computed for each request.

For example, 10,000 entries of at most 256 characters use some megabytes.
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
    """Return a decorator that caches the results of a function for the `entries` most recently used short names.

    The name is the first argument of the function.
    """

    def decorate(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
        known = lru_cache(entries)(function)

        def call(name: str, /, *others: P.args, **named: P.kwargs) -> R:
            if len(name) > LONGEST_NAME:
                return function(name, *others, **named)
            return known(name, *others, **named)  # type: ignore[arg-type]

        return call

    return decorate
