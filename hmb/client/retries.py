"""Retries: the loop that repeats an attempt after a temporary error.

When a broker restarts, or a partition moves to another broker, requests fail for a short time. The connection is lost,
or the response contains a retriable error code. The function `with_retries` repeats such an attempt until a time limit
is over. For example, the time limit is 0.25 s, and the pause between two attempts is 0.1 s:
    time in s    0.0        0.1        0.2        0.3
    attempt      fails      fails      fails      fails: `with_retries` raises its error

The fetcher and the sender do not use `with_retries`. Both handle many partitions at the same time. If one partition
fails, the other partitions must not wait. The fetcher and the sender therefore store the time of the next attempt for
each partition.
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
    """Return whether the same request can succeed if it is sent again later.

    The result is True for a lost connection, and for each error code that Kafka calls retriable.
    """
    return isinstance(error, ConnectionFailed) or error.code.retriable


def pause(error: ConnectionFailed | KafkaError) -> None:
    """Wait for `RETRY_PAUSE` seconds. The pause is the same for every error."""
    time.sleep(RETRY_PAUSE)


def with_retries(
    attempt: Callable[[], T],
    retry_for: Callable[[ConnectionFailed | KafkaError], float],
    wait: Callable[[ConnectionFailed | KafkaError], bool | None] = pause,
) -> T:
    """Call `attempt`, and return its result. After a temporary error, call `attempt` again.

    The functions `retry_for` and `wait` take the error as their argument. `retry_for` returns the time limit in
    seconds, counted from the first attempt, and 0 for a permanent error. `wait` pauses before the next attempt. If
    `wait` returns True, or if the time limit is over, `with_retries` makes no further attempt and raises the last
    error.
    """
    started = time.monotonic()
    while True:
        try:
            return attempt()
        except (ConnectionFailed, KafkaError) as error:
            if time.monotonic() - started >= retry_for(error) or wait(error):
                raise
