"""Deferred responses: the handler has done its work, and only a wait is left.

The response to a Produce with acks=all must wait until its records are on disk. A sync takes milliseconds. During the
sync the connection can append the records of the next request. So the handler appends the records, which fixes their
offsets, and returns a `Deferred`. `Deferred.result` waits for the sync and returns the response.

A connection may begin further requests before it asks for the result (network/gathering.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hmb.protocol.schema import Response


class Deferred(NamedTuple):
    """A response that is not final yet. `result` waits until it is final, and returns it."""

    result: Callable[[], Response]
