"""Retries: the loop that repeats an attempt after a temporary error.

Brokers restart, and partitions and groups move to other brokers. For a moment, requests then fail with a lost
connection or with a retriable error. Every part of the client repeats such requests for a limited time. The parts
differ in three points, which are the arguments of `with_retries`: the attempt, the time limit of an error, and the
pause. For example, with a limit of 0.25 s and a pause of 0.1 s::

    time in s    0.0        0.1        0.2        0.3
    attempt      fails      fails      fails      fails: its error is raised

The fetcher and the sender do not use `with_retries`. They work on many partitions at once, so they store the time of
the next attempt with each partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hmb.client.connection import ConnectionFailed
from hmb.protocol.errors import KafkaError

T = TypeVar("T")

RETRY_PAUSE = 0.1  # seconds


def is_retriable(error: ConnectionFailed | KafkaError) -> bool:
    """Return whether a later attempt may succeed: after a lost connection, and after Kafka's retriable errors."""
    return isinstance(error, ConnectionFailed) or error.code.retriable


def pause(error: ConnectionFailed | KafkaError) -> None:
    """Wait for `RETRY_PAUSE` seconds after any error."""
    time.sleep(RETRY_PAUSE)


def with_retries(
    attempt: Callable[[], T],
    retry_for: Callable[[ConnectionFailed | KafkaError], float],
    wait: Callable[[ConnectionFailed | KafkaError], bool | None] = pause,
) -> T:
    """Call `attempt` until it raises no error, and return its result.

    `retry_for` returns how many seconds after the start an error is still retried: 0 for a permanent error. `wait`
    waits before the next attempt. If it returns True, the error is raised instead.
    """
    started = time.monotonic()
    while True:
        try:
            return attempt()
        except (ConnectionFailed, KafkaError) as error:
            if time.monotonic() - started >= retry_for(error) or wait(error):
                raise
