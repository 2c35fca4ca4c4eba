"""A cache of what belongs to a name: the hash of a group id, the key of a committed offset.

A group that commits once commits again, so the coordinator needs the same values for each request. A client chooses
the names, and a name may have 32,767 bytes. A cache that counts entries would therefore have no limit in bytes. This
one keeps short names only. The values of long names are computed for each request.
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
    """Let a function remember so many results for short names. The name is the function's first argument."""

    def decorate(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
        known = lru_cache(entries)(function)

        def call(name: str, /, *others: P.args, **named: P.kwargs) -> R:
            if len(name) > LONGEST_NAME:
                return function(name, *others, **named)
            return known(name, *others, **named)  # type: ignore[arg-type]

        return call

    return decorate
