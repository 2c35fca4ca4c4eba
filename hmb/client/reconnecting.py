"""The pauses between attempts to connect to a broker that cannot be reached.

If a computer runs but its broker does not, the computer refuses each connection within microseconds. Without
pauses between the attempts, each client would try to connect thousands of times per second. When the broker
restarted, all clients would connect at once.

The solution is *exponential backoff with jitter*. After the first failed attempt to connect to an address, the
client waits 50 ms before the next attempt. Each further failure doubles this pause, up to 0.8 s. To each pause,
the client adds *jitter*: it makes the pause up to 20 % shorter or longer, at random. So not all clients connect
at the same moment. No pause is longer than one second, so each client tries again within one second after the
broker has started. These are the pauses:
    failures in a row      1      2      3      4      5 and more
    pause in ms           50    100    200    400    800             (each plus or minus 20 %)

During the pause after a failed attempt, each further attempt to connect fails immediately, with the error of the last
failure. So the caller does not wait, and can connect to another broker.

Source: `reconnect.backoff.ms` and `reconnect.backoff.max.ms` of Kafka's clients (their defaults are 50 ms and 1 s);
KIP-144, KIP-580.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from hmb.client.backoff import jittered, pause_after

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.8  # seconds


@dataclass(slots=True)
class _AddressFailure:
    """The failures of one address: the last error, the number of failures, and the time of the next attempt."""

    reason: str
    count: int
    retry_at: float


class AddressFailures:
    """The recent failures of each broker address. All connections of one client share this object."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards the fields below; a thread that holds it takes no other lock
        self._failures: dict[str, _AddressFailure] = {}
        self._have_api_versions: set[str] = set()

    def recent_failure(self, address: str) -> str | None:
        """Return why the client must not connect to this address yet, or None if it may connect now.

        After a failed attempt, the client must wait up to one second before it tries again. During this time, the
        method returns the error of the failed attempt.
        """
        with self._lock:
            failure = self._failures.get(address)
            return failure.reason if failure and self._clock() < failure.retry_at else None

    def failed(self, address: str, reason: str) -> None:
        """Store the reason of a failed attempt to connect, and start a pause before the next attempt."""
        with self._lock:
            before = self._failures.get(address)
            count = before.count if before else 0
            pause = jittered(pause_after(count, FIRST_PAUSE, LONGEST_PAUSE))
            self._failures[address] = _AddressFailure(reason, count + 1, self._clock() + pause)

    def lost(self, address: str, reason: str) -> None:
        """Store that an open connection to this address has broken. `has_failed_recently` then returns True.

        The client therefore tries all other addresses first. Unlike `failed`, this method starts no pause. If the other
        addresses do not work, the client may connect to this address again immediately.
        """
        with self._lock:
            self._failures.setdefault(address, _AddressFailure(reason, 0, self._clock()))

    def opened(self, address: str) -> None:
        """Forget earlier failures of an address, because a connection is open and the broker has answered."""
        with self._lock:
            self._failures.pop(address, None)

    def has_failed_recently(self, address: str) -> bool:
        """Return whether the last attempt to connect to this address failed, or the last connection broke.

        If the result is True, the client tries other addresses first.
        """
        with self._lock:
            return address in self._failures

    def has_api_versions(self, address: str) -> bool:
        """Return whether this broker has ever answered an ApiVersions request.

        A broker older than Kafka 0.10 does not know this request.
        """
        with self._lock:
            return address in self._have_api_versions

    def add_api_versions(self, address: str) -> None:
        with self._lock:
            self._have_api_versions.add(address)
