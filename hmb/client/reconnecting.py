"""The pauses between attempts to connect to a broker that cannot be reached.

The problem: a broker that is down refuses a connection within microseconds. A client that retries at once would make
thousands of attempts a second. When the broker is back, all clients would connect at the same moment.

The idea is *exponential backoff with jitter*. After the first failure, no connection tries the address for 50 ms. Each
further failure doubles this pause, up to 0.8 s. A random part of 20 % spreads the attempts of many clients. A client
therefore finds a broker that is back within one second::

    failures in a row      1      2      3      4      5 and more
    pause in ms           50    100    200    400    800             (each plus or minus 20 %)

An attempt during a pause fails at once, with the reason of the last failure. It does not wait, so that the caller can
use another broker.

Source: `reconnect.backoff.ms` and `reconnect.backoff.max.ms` of Kafka's clients (their defaults are 50 ms and 1 s);
KIP-144, KIP-580.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.8  # seconds
JITTER = 0.2


@dataclass(slots=True)
class _AddressFailure:
    """The last error of an address, the number of consecutive failures, and the time of the next attempt."""

    reason: str
    count: int
    retry_at: float


class KnownBrokers:
    """The state of each broker address. All connections of one client share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards the fields below; no thread takes another lock while it holds this one
        self._failures: dict[str, _AddressFailure] = {}
        self._have_api_versions: set[str] = set()

    def recent_failure(self, address: str) -> str | None:
        """Return the reason why a client must not connect now, or None if it may."""
        with self._lock:
            failure = self._failures.get(address)
            return failure.reason if failure and self._clock() < failure.retry_at else None

    def failed(self, address: str, reason: str) -> None:
        """Note that a connection could not be opened. The next attempt must wait."""
        with self._lock:
            before = self._failures.get(address)
            count = before.count if before else 0
            pause = min(FIRST_PAUSE * 2**count, LONGEST_PAUSE) * random.uniform(1 - JITTER, 1 + JITTER)
            self._failures[address] = _AddressFailure(reason, count + 1, self._clock() + pause)

    def lost(self, address: str, reason: str) -> None:
        """Note that an open connection broke. A client may open a new one at once, but prefers other brokers."""
        with self._lock:
            self._failures.setdefault(address, _AddressFailure(reason, 0, self._clock()))

    def opened(self, address: str) -> None:
        """Note that a connection is open and the broker has answered. This clears earlier failures."""
        with self._lock:
            self._failures.pop(address, None)

    def is_doubtful(self, address: str) -> bool:
        """Return whether the last event of an address was a failure."""
        with self._lock:
            return address in self._failures

    def has_api_versions(self, address: str) -> bool:
        """Return whether this broker has ever answered ApiVersions, which brokers before Kafka 0.10 cannot do."""
        with self._lock:
            return address in self._have_api_versions

    def answered_api_versions(self, address: str) -> None:
        with self._lock:
            self._have_api_versions.add(address)
