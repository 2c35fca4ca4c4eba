"""Retries: the function `with_retries` repeats a call after a temporary error, until a time limit is over.

When a broker restarts, or a partition moves to another broker, requests fail for a short time. The connection is lost,
or the response contains a retriable error code. The caller passes a function to `with_retries`, and this function sends
the request. A call of the function is an *attempt*.

After a failed attempt, `with_retries` compares the elapsed time with the time limit. If the elapsed time is shorter,
`with_retries` pauses and makes another attempt. For example, the limit is 0.25 s, and the pause is 0.1 s:
    time in s    0.0        0.1        0.2        0.3
    attempt      fails      fails      fails      fails, and `with_retries` raises the error of this attempt
After the failure at 0.2 s, the elapsed time is still shorter than the limit, so one more attempt follows. It begins at
0.3 s, which is after the limit, because `with_retries` does not compare the times again after the pause.

The fetcher and the sender do not use `with_retries`, because they handle many partitions at the same time.
During a pause of `with_retries`, all partitions would wait, although only one partition has failed. So the
fetcher and the sender do not pause: for each failed partition, they store the time of the next attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hmb.client.backoff import RETRY_PAUSE
from hmb.client.connection import ConnectionFailed
from hmb.protocol.errors import KafkaError

T = TypeVar("T")


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

    After an error, `with_retries` calls two functions:

    - `retry_for(error)` returns the time limit in seconds, counted from the start of the first attempt. For a
      permanent error, `retry_for` returns 0, so there is no further attempt.
    - `wait(error)` pauses before the next attempt. If `wait` returns True, there is no further attempt.

    `with_retries` raises the last error if the time limit has passed, or if `wait` has returned True.
    """
    started = time.monotonic()
    while True:
        try:
            return attempt()
        except (ConnectionFailed, KafkaError) as error:
            if time.monotonic() - started >= retry_for(error) or wait(error):
                raise
