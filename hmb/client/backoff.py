"""The pauses that a client makes between a failed attempt and the next attempt.

A broker that restarts or is overloaded must not receive every failed request again immediately. A client therefore
waits before the next attempt. Each failure doubles this pause, up to a limit. If many clients lose the same broker,
they should not all connect again at the same moment. Connections and producers therefore make each pause a little
shorter or longer at random (`jittered`).

For example, the first pause is 0.1 s and the limit is 1 s. The pauses after several failures are then 0.1, 0.2, 0.4,
0.8, 1, 1, ... seconds.

Source: KIP-580; `retry.backoff.ms` and `retry.backoff.max.ms` of Kafka's clients.
"""

from __future__ import annotations

import math
import random

RETRY_PAUSE = 0.1  # seconds; Kafka's default of retry.backoff.ms
LONGEST_PAUSE = 1.0  # seconds; Kafka's default of retry.backoff.max.ms
JITTER = 0.2  # A pause with jitter is up to 20 % shorter or longer.
MAX_DOUBLINGS = 16  # After so many failures, every pause has reached its limit.


def pause_after(failures: int, first: float, longest: float = LONGEST_PAUSE) -> float:
    """Return the number of seconds that a client waits after a failure.

    The number `failures` counts the failures before this one. Each of them doubles the pause, up to `longest`.

    For example, `first` is 0.1 s and `longest` is 1 s. If `failures` is 0, 1, 2, 3 or 4, the pause is 0.1, 0.2,
    0.4, 0.8 or 1 s.
    """
    return min(first * 2.0 ** min(failures, MAX_DOUBLINGS), longest)


def jittered(pause: float) -> float:
    """Return a pause that is up to 20 % shorter or longer, at random."""
    return pause * random.uniform(1 - JITTER, 1 + JITTER)


class Backoff:
    """Computes when a client may repeat a request. `retry_at` is a point in time (seconds), not a pause."""

    def __init__(self, first: float) -> None:
        self._first = first
        self._failures = 0
        self.retry_at = -math.inf

    def failed(self, now: float) -> None:
        self.retry_at = now + pause_after(self._failures, self._first)
        self._failures += 1

    def response_received(self, now: float) -> None:
        """Reset the next pause to its first value, unless the response contained an error.

        The caller calls this method after every response. If the response contains an error code, the caller first
        calls `failed`, which sets `retry_at` to a time in the future. This method then does nothing.
        """
        if self.retry_at <= now:
            self._failures = 0
