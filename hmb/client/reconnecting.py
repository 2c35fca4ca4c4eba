"""When a broker that could not be reached is tried again.

A broker that is down refuses a connection within microseconds, so a client that tries again at once makes thousands of
attempts a second, and when the broker comes back all clients fall upon it in the same moment.  Hence *exponential
backoff with jitter*: after the first failure an address is left alone for 50 ms, after each further one for twice as
long, up to 0.8 s, each time some 20 % more or less, so that clients drift apart; a broker that is back is found within
a second.  Attempts that come too early are not made: they fail with what was wrong the last time.  They do not wait
either, for whoever has other brokers to talk to should do that meanwhile.

Source: `reconnect.backoff.ms` and `reconnect.backoff.max.ms` of Kafka's clients (there 50 ms, 1 s); KIP-144, KIP-580.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.8  # seconds
JITTER = 0.2


@dataclass(slots=True)
class _Trouble:
    """What is wrong with an address, how often it was so in a row, and when it may be tried again."""

    reason: str
    failures: int
    retry_at: float


class KnownBrokers:
    """What the connections of a client know about the addresses that they talk to; all of them share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards all below; no other lock is taken under it
        self._trouble: dict[str, _Trouble] = {}
        self._have_api_versions: set[str] = set()

    def trouble(self, address: str) -> str | None:
        """Why a connection should not be tried now; None: try it."""
        with self._lock:
            trouble = self._trouble.get(address)
            return trouble.reason if trouble and self._clock() < trouble.retry_at else None

    def failed(self, address: str, reason: str) -> None:
        """A connection could not be opened: leave the address alone for a while."""
        with self._lock:
            before = self._trouble.get(address)
            failures = before.failures if before else 0
            pause = min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE) * random.uniform(1 - JITTER, 1 + JITTER)
            self._trouble[address] = _Trouble(reason, failures + 1, self._clock() + pause)

    def lost(self, address: str, reason: str) -> None:
        """An open connection broke: others are preferred, but it may be opened again at once."""
        with self._lock:
            self._trouble.setdefault(address, _Trouble(reason, 0, self._clock()))

    def opened(self, address: str) -> None:
        """A connection is open, and the broker has answered on it."""
        with self._lock:
            self._trouble.pop(address, None)

    def is_doubtful(self, address: str) -> bool:
        """Whether the last that is known of an address is a failure."""
        with self._lock:
            return address in self._trouble

    def has_api_versions(self, address: str) -> bool:
        """Whether this broker has ever answered ApiVersions, and so is none of before 0.10."""
        with self._lock:
            return address in self._have_api_versions

    def answered_api_versions(self, address: str) -> None:
        with self._lock:
            self._have_api_versions.add(address)
