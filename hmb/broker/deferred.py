"""Deferred responses. A deferred response is sent later, for example when the records of a request are on disk.

The response to a Produce request with acks=all must wait until the records are on disk. This sync takes milliseconds.
Meanwhile the thread of the connection can handle the next request. Therefore the handler does not wait. It appends the
records to the log, which assigns their offsets, and returns a `Deferred`. Later, the thread calls `Deferred.result`,
which waits for the sync and returns the response.

A handler returns a `Deferred` of a response. The dispatcher turns it into a `Deferred` of the encoded response. The
module network/gathering.py decides how many requests a connection handles before it calls `Deferred.result`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Deferred(NamedTuple, Generic[T_co]):
    """A response that must wait, for example until records are on disk. `result` waits, and returns the response."""

    result: Callable[[], T_co]


def final(response: T | Deferred[T]) -> T:
    """Return the response. If it is deferred, wait first."""
    return response.result() if isinstance(response, Deferred) else response
