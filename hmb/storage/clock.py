"""The clock of a broker: the two functions from which the broker reads the time.

A test of retention cannot wait for a week. The embedded broker therefore accepts a clock that a test moves forward
(hmb/testing/clock.py). The parts of a broker do not read the system's clock themselves. Each part receives one of the
clock's functions when the broker creates it. A call of this function costs what a call of `time.time_ns` costs.

A clock decides when something expires. It does not decide how long a thread waits, because a moved clock would then cut
off clients. This table shows which time each part uses::

    now_ms             LogAppendTime, the limits of timestamps, retention, file.delete.delay.ms, flush.ms,
                       the lags and horizons of compaction, producers of a log, transactions, transactional ids,
                       committed offsets, KIP-848 assignment intervals
    monotonic_ms       deadlines of group members: session, rebalance, initial delay, revocation
    time.monotonic     the wait of a fetch, deadlines of requests and sockets, the stop of a broker, intervals of
                       housekeepers, the rate of compaction and its pause after an error
    the system's time  the eviction of fetch sessions, producer ids after the loss of their file

For example, the retention of a topic is 7 days. A record has the timestamp 1000 (ms). The broker deletes it as soon as
`now_ms` returns more than 604,801,000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


def now_ms() -> int:
    """Return the system's time in ms since 1970."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Return the time (ms) of a clock that never jumps."""
    return time.monotonic_ns() // 1_000_000


class BrokerClock(NamedTuple):
    """The functions from which a broker reads the time (ms).

    `now_ms` counts from 1970. `monotonic_ms` has no fixed start and never jumps back.
    """

    now_ms: Callable[[], int] = now_ms
    monotonic_ms: Callable[[], int] = monotonic_ms


SYSTEM_CLOCK = BrokerClock()
