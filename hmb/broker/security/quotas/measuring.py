"""Counts what clients use, for example bytes, and computes how long they wait if they exceed a quota.

A *meter* counts what clients use. Clients that share a quota also share its meter. One quota limits how many
partitions clients create and delete. Its meter is a bucket of tokens (`TokenBucket`). The meters of all other
quotas are sliding windows (`RateWindow`). The broker creates a meter when the quota first applies to a request
or a connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from hmb.broker.security.quotas.limits import Limit, Limits, QuotaClient
from hmb.broker.security.quotas.window import DEFAULT_SIZE, RateWindow, TokenBucket, WindowSize
from hmb.broker.security.store import SecurityState
from hmb.protocol.enums import QuotaKey
from hmb.security.ip_addresses import addresses_of
from hmb.storage.clock import SYSTEM_CLOCK

# A client can invent client ids, and each id can add a meter (the counter of a quota). To limit the memory, each dict
# of meters contains at most this number.
MAX_METERS = 10_000
Meter = TypeVar("Meter", RateWindow, TokenBucket)
MeterKey: TypeAlias = tuple[str, str | None, str | None]  # (quota, user, client id) or (quota, IP address, None)
LONG_THROTTLE = {QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE}
"""The quotas whose throttle time can be longer than one sample of the window."""


class ClientQuotas:
    """The quotas of all clients, and the meters that count what clients use. Thread-safe.

    The dicts `_windows` and `_buckets` contain the meters in the order of their last use. If a dict already
    contains 10,000 meters (MAX_METERS), a new meter replaces the least recently used meter.
    """

    def __init__(
        self,
        size: WindowSize = DEFAULT_SIZE,
        mutations_size: WindowSize = DEFAULT_SIZE,
        clock_ms: Callable[[], int] = SYSTEM_CLOCK.monotonic_ms,
    ) -> None:
        """Begin without quotas.

        A `WindowSize` is a time span: a number of samples and the length of a sample. `mutations_size` is for the
        quota CONTROLLER_MUTATION_RATE, and `size` is for all other quotas.
        """
        self.size, self._mutations_size = size, mutations_size
        self._clock_ms = clock_ms
        # A thread needs `_lock` to use the meters or `_addresses`, or to replace `limits`. A thread that holds `_lock`
        # takes no other lock.
        self._lock = threading.Lock()
        self._windows: dict[MeterKey, RateWindow] = {}
        self._buckets: dict[MeterKey, TokenBucket] = {}
        self._addresses: dict[str, set[str]] = {}  # the IP addresses of each host with a quota
        self.limits = Limits({}, {})

    def load(self, state: SecurityState) -> None:
        """Apply the quotas of `state` from now on. The meters keep what they have counted so far.

        A quota can name a host. Only a name server knows the host's IP addresses. This method must not wait for a name
        server, because the caller holds the lock of the security store. A quota of a new host therefore applies only
        after the next call of `resolve_hosts`.
        """
        with self._lock:
            self.limits = Limits(state.quotas, self._addresses)

    def resolve_hosts(self) -> None:
        """Find the IP addresses of all hosts with a quota.

        A name server can be slow, so the caller must not hold a lock.
        """
        found = {host: addresses_of(host) for host in self.limits.hosts}
        with self._lock:
            quotas, hosts = self.limits.quotas, self.limits.hosts
            self._addresses = {host: its for host, its in {**self._addresses, **found}.items() if host in hosts}
            self.limits = Limits(quotas, self._addresses)

    def record(self, key: QuotaKey, client: QuotaClient, value: float) -> int:
        """Add `value`, for example a number of bytes, to the amount that a client has used.

        Return the time in ms that the client must wait, or 0.
        """
        limit = self.limits.of(key, client)
        if limit is None or not value:
            return 0
        with self._lock:
            window = _meter(self._windows, (key, limit.user, limit.client_id), lambda: RateWindow(self.size))
            now = self._clock_ms()
            window.record(value, now)
            wait = window.throttle_ms(limit.quota, now)
        return wait if key in LONG_THROTTLE else min(wait, self.size.sample_ms)

    def record_connection(self, address: str) -> int:
        """If the quota of an IP address permits a new connection, count the connection and return 0.

        Otherwise, do not count the connection. Return the time in ms until the broker closes the connection.
        """
        key = QuotaKey.CONNECTION_CREATION_RATE
        limit = self.limits.of_address(key, address)
        if limit is None:
            return 0
        with self._lock:
            window = _meter(self._windows, (key, address, None), lambda: RateWindow(self.size))
            return record_or_refuse([(window, limit.quota)], self._clock_ms())

    def take_tokens(self, client: QuotaClient, partitions: int) -> None:
        """Take one token from the client's `TokenBucket` for each partition that the client creates or deletes.

        If no quota limits the creation and the deletion of partitions for this client, do nothing.
        """
        limit = self.limits.of(QuotaKey.CONTROLLER_MUTATION_RATE, client)
        if limit is not None:
            with self._lock:
                self._bucket(limit).take(partitions, limit.quota, self._clock_ms())

    def wait_for_tokens(self, client: QuotaClient) -> int:
        """Return how long (ms) a client must wait before it can create or delete partitions; 0 means no wait."""
        limit = self.limits.of(QuotaKey.CONTROLLER_MUTATION_RATE, client)
        if limit is None:
            return 0
        with self._lock:
            return self._bucket(limit).throttle_ms(limit.quota, self._clock_ms())

    def most_bytes(self, client: QuotaClient) -> float | None:
        """Return the limit in bytes for one Fetch response, or None if the client has no quota.

        By default, the limit is the amount that the quota allows in 10 s: 10,000 bytes for a quota of 1,000 bytes/s.
        """
        limit = self.limits.of(QuotaKey.CONSUMER_BYTE_RATE, client)
        return None if limit is None else limit.quota * (self.size.samples - 1) * self.size.sample_ms / 1000

    def _bucket(self, limit: Limit) -> TokenBucket:
        key = (QuotaKey.CONTROLLER_MUTATION_RATE, limit.user, limit.client_id)
        return _meter(self._buckets, key, lambda: TokenBucket(self._mutations_size))


def record_or_refuse(windows: Sequence[tuple[RateWindow, float]], now_ms: int) -> int:
    """Count one event, such as a new connection, in all `windows`, unless it would exceed the quota of a window.

    `windows` contains each window together with its quota. The function returns 0 if it has counted the event.
    Otherwise it returns the time in ms that the client must wait. This time is at most 1 s by default
    (`quota.window.size.seconds`).
    """
    for window, _ in windows:
        window.record(1, now_ms)
    wait = max(min(window.size.sample_ms, window.throttle_ms(quota, now_ms)) for window, quota in windows)
    if wait:
        for window, _ in windows:
            window.record(-1, now_ms)
    return wait


def _meter(meters: dict[MeterKey, Meter], key: MeterKey, new: Callable[[], Meter]) -> Meter:
    """Return the meter (window or bucket) with this key, and move it to the end of `meters`. Create it if necessary."""
    meter = meters.pop(key, None)
    if meter is None:
        meter = new()
        if len(meters) >= MAX_METERS:
            del meters[next(iter(meters))]
    meters[key] = meter
    return meter
