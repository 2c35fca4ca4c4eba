"""The clock of a broker: the two functions from which the broker reads the time.

Retention can be a week, but a test cannot wait for a week. Therefore a test can pass its own clock to the
embedded broker, and move this clock forward (hmb/testing/clock.py). For this reason, most parts of a broker do
not read the system's clock. Instead, they call the two functions of the broker's clock. The function `now_ms`
returns the milliseconds since 1970, and `monotonic_ms` returns a time (ms) that never goes back. For example, the
broker passes its function `now_ms` to each log.

A test can move the clocks `now_ms` and `monotonic_ms` forward, for example to make the broker delete expired
records. A thread that waits for new records uses `time.monotonic`, which tests do not move. With a moved clock,
the wait would end too early.

The broker reads the time from four clocks. The next table shows the main uses of each clock:
    now_ms             settings: retention.ms, flush.ms, file.delete.delay.ms, min.compaction.lag.ms,
                       max.compaction.lag.ms
                       records: LogAppendTime, the valid range of timestamps, the age of tombstones
                       expiry: committed offsets, idle producers, idle transactional ids
                       coordinators: the timeouts of transactions, the intervals of KIP-848 assignments
    monotonic_ms       the deadlines of group members (session, rebalance, initial delay, revocation)
                       the acquisition locks of share groups
                       client quotas
    time.monotonic     how long a Fetch request waits for records
                       deadlines: requests, connections, the stop of a broker
                       background tasks: their intervals, the speed of compaction, the pause after a
                       failed compaction
    the system's time  the age of fetch sessions, the next producer id after the loss of its file

If the file with the next producer id is lost or damaged, the next id is the system's time (ms since 1970). This
number is greater than all assigned ids: they begin at 0, and a broker assigns fewer than one id per ms.

Example: a topic has a retention of 7 days, which is 604,800,000 ms. A segment's newest record has the timestamp 1000
(ms). The segment expires when `now_ms` returns more than 604,801,000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from hmb.units import now_ms


def monotonic_ms() -> int:
    """Return the time (ms) of a clock that nobody can set and that never goes back.

    The clock may start at any number, so only the difference between two of its values has a meaning.
    """
    return time.monotonic_ns() // 1_000_000


class BrokerClock(NamedTuple):
    """The functions from which a broker reads the time (ms).

    `now_ms` counts from 1970. `monotonic_ms` has no fixed start and never jumps back.
    """

    now_ms: Callable[[], int] = now_ms
    monotonic_ms: Callable[[], int] = monotonic_ms


SYSTEM_CLOCK = BrokerClock()
