"""Deferred responses: responses that the broker sends later, for example after the records of a request are on disk.

The response to a Produce request with acks=all must wait until the records are on disk. Writing them to disk (a sync)
takes milliseconds, and meanwhile the thread of the connection can handle the next request.

The handler of Produce does not wait for the sync. The handler appends the records to the log, which assigns their
offsets, and returns a `Deferred`. Later, the connection's thread calls `Deferred.result`, which waits for the sync and
returns the response.

A `Deferred` is an object with a function `result`, which waits and then returns the response. The handler's `Deferred`
returns a response object, but the connection needs the bytes of the response. The dispatcher (dispatch.py) therefore
puts the handler's `Deferred` into a second `Deferred`, which also encodes the response.

The thread of a connection may handle further requests before it waits for a deferred response with `Deferred.result`.
The module network/gathering.py limits the number of these requests.
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
    """Return the response. If the response is deferred, first wait until it is ready."""
    return response.result() if isinstance(response, Deferred) else response
