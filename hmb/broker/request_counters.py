"""Counters of the requests of each API: how many, how slow, how many with an error, and how many bytes of records.

The broker updates these counters for every request, so an update must be fast. The module counting.py measures
the requests and calls the counters.

*Quantiles.* To compute the 99th percentile exactly, the broker would have to store the duration of every request.
Instead, it counts the requests in a *histogram* with 104 buckets, which are ranges of durations. Each bucket ends at
1.19 times the end of the bucket before it. (1.19 is the fourth root of 2, so four buckets cover, for example, the
range from 1 to 2 ms.) The first bucket ends at 1 us. The last bucket contains all durations above 47 s.

The method `quantile` computes a percentile from a histogram. Suppose that 98 requests took 1.1 ms, and two
requests took 8.5 ms. The 99th percentile is then 8.5 ms. The histogram only shows a range from 8.2 to
9.7 ms, so `quantile` returns the middle, 8.9 ms. Between 1 us and 47 s, the error is at most 9.1 %.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hmb.protocol.api_keys import ApiKey

BUCKETS_PER_DOUBLING = 4
BUCKETS = 26 * BUCKETS_PER_DOUBLING
US = 1_000_000
# The longest duration (seconds) that each bucket includes. The last bucket has no limit, so it is not in the list.
BUCKET_ENDS = [2 ** (bucket / BUCKETS_PER_DOUBLING) / US for bucket in range(BUCKETS - 1)]


@dataclass(slots=True)
class RequestCount:
    """Counts the requests of one API since the broker started. Thread-safe."""

    count: int = 0
    errors: int = 0
    record_bytes: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    # `_lock` guards all fields of this object. A thread that holds `_lock` takes no other lock.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, seconds: float, is_error: bool, record_bytes: int) -> None:
        """Count one request whose response is ready after `seconds`.

        `record_bytes` is the size of the records in the request (Produce) or in the response (Fetch).
        """
        bucket = bisect_left(BUCKET_ENDS, seconds)
        with self._lock:
            self.count += 1
            self.errors += is_error
            self.record_bytes += record_bytes
            self.seconds += seconds
            self.buckets[bucket] += 1

    def copy(self) -> RequestCount:
        with self._lock:
            return replace(self, buckets=self.buckets[:], _lock=threading.Lock())

    def quantile(self, share: float) -> float:
        """Return a quantile of the response times, in seconds. If no request was counted, return 0.

        For example, `quantile(0.99)` returns the time within which 99 % of the responses were ready.
        """
        rank = math.ceil(share * self.count)
        for bucket, count in enumerate(self.buckets):
            rank -= count
            if rank <= 0 < count:
                return _middle(bucket)
        return 0.0


# A function of this type gets a handler, a request and its context. It calls the handler and returns the response.
Observe = Callable[[Callable[..., Any], Any, Any], Any]


class RequestCounters:
    """The counters of all APIs."""

    def __init__(self) -> None:
        self._counts: dict[ApiKey, RequestCount] = {}
        # To record requests, the broker calls `observe` instead of a handler, and `observe` calls the handler. If
        # `observe` is None, the broker calls the handler directly.
        self.observe: Observe | None = None

    def of(self, api: ApiKey) -> RequestCount:
        """Return the counters of an API. The broker calls this method for each API before it accepts connections."""
        return self._counts.setdefault(api, RequestCount())

    def copy(self) -> dict[ApiKey, RequestCount]:
        """Return a copy of the counters of each API that a client has used."""
        return {api: count.copy() for api, count in self._counts.items() if count.count}


def _middle(bucket: int) -> float:
    """Return the time (seconds) in the middle of a bucket: for the bucket from 8.2 to 9.7 ms, return 8.9 ms.

    The result is the geometric mean of the two ends. Both ends therefore differ from it by the same factor.
    """
    return 2 ** ((bucket - 0.5) / BUCKETS_PER_DOUBLING) / US
