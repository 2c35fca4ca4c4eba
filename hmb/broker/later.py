"""Answers that go out together, and how a pipelining client waits for the disk once.

A client may send requests without waiting for the answers.  A connection's thread serves them one after the other, so
if each has to be on disk before the next is looked at, each costs a sync, and each answer a system call.  A handler
that gives `Later` has done all but the waiting: the records have their place.  When the next request of the same kind
has come already, the connection takes that first, and then finishes all of them, in their order.  What was enqueued
together is written and synced together, and the answers go out together.

So at most MAX_LATER requests of one kind are under way on a connection, all begun in the order in which they came.  Any
other request waits until they are answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hmb.protocol.schema import Response

MAX_LATER = 64


class Later(NamedTuple):
    """An answer that is not true yet, or need not go out yet; `finish` waits until it is true, and gives it."""

    finish: Callable[[], Response]
