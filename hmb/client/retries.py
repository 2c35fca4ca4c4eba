"""Retries: the loop that repeats an attempt after a temporary error.

Brokers restart, and partitions and groups move to other brokers. For a moment, requests then fail: the connection is
lost, or the response contains a retriable error code. The client sends such a request again, until a time limit is
over. The arguments of `with_retries` are the function to repeat, the time limit for each error, and the pause before
the next attempt. For example, with a limit of 0.25 s and a pause of 0.1 s:
    time in s    0.0        0.1        0.2        0.3
    attempt      fails      fails      fails      fails: `with_retries` raises its error

The fetcher and the sender do not use `with_retries`. Both handle many partitions at once, and one partition must not
wait because another one has failed. The fetcher and the sender therefore store a time of the next attempt for each
partition.
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
    """Return whether the same request may succeed later.

    This is so after a lost connection, and after the error codes that Kafka calls retriable.
    """
    return isinstance(error, ConnectionFailed) or error.code.retriable


def pause(error: ConnectionFailed | KafkaError) -> None:
    """Wait for `RETRY_PAUSE` seconds. The length does not depend on the error."""
    time.sleep(RETRY_PAUSE)


def with_retries(
    attempt: Callable[[], T],
    retry_for: Callable[[ConnectionFailed | KafkaError], float],
    wait: Callable[[ConnectionFailed | KafkaError], bool | None] = pause,
) -> T:
    """Call `attempt` until the call raises no error, and return its result.

    `retry_for` takes an error, and returns the time limit for the retries in seconds, counted from the first attempt.
    It returns 0 for a permanent error. After the time limit, the error is raised. `wait` takes an error, and waits
    before the next attempt. If `wait` returns True, no further attempt is made, and the error is raised.
    """
    started = time.monotonic()
    while True:
        try:
            return attempt()
        except (ConnectionFailed, KafkaError) as error:
            if time.monotonic() - started >= retry_for(error) or wait(error):
                raise
