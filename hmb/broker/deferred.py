"""Deferred responses: responses that the broker sends later, for example after the records of a request are on disk.

The response to a Produce request with acks=all must wait until the records are on disk. Writing them to disk (a sync)
takes milliseconds, and meanwhile the thread of the connection can handle the next request.

The handler of a Produce request appends the records to the log, and the log assigns their offsets. The records
may not be on disk yet, so the response must wait. The handler itself does not wait: it returns a `Deferred`.
Later, the thread of the connection calls `Deferred.result`. This function waits until the records are on disk,
and returns the response.

The `Deferred` of a handler returns the response as an object, but the connection needs bytes. The dispatcher
(dispatch.py) therefore creates a second `Deferred`. Its `result` gets the object from the handler's `Deferred`,
and encodes the object as bytes.

The thread of a connection can collect several deferred responses, and then call `Deferred.result` for each of
them. The module network/gathering.py limits the number of collected responses.
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
