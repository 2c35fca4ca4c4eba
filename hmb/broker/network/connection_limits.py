"""The limits of connections: how many clients may be connected, and how fast new ones may connect (KIP-402, KIP-612).

A server has one thread for each connection, so the server must limit the number of connections. The table shows what
happens to a connection above each limit:
    setting                                          what the limit counts         connection above the limit
    max.connections                                  all connections               closed, or an older one is closed
    listener.name.NAME.max.connections               connections of one listener   closed
    max.connections.per.ip                           connections of one address    closed
    max.connection.creation.rate                     new connections per second    waits
    listener.name.NAME.max.connection.creation.rate  the same for one listener     waits
    connection_creation_rate (a quota)               the same for one address      closed after a delay
Above max.connections, the server first tries to close an older connection whose client has not yet sent a complete
request, or must still log in with SASL (server.py: _make_room).

For single addresses, max.connections.per.ip.overrides sets other limits.

The server measures the rate of new connections with a sliding window (security/quotas/window.py). If this rate
is too high, the server accepts one new connection, and then pauses. During the pause, the server reads no
request from this connection, and accepts no other connection on the same listener.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from hmb.broker.config.keys import ConfigError, split_list
from hmb.broker.config.limits import LISTENER_LIMITS, LimitsConfig
from hmb.broker.network.listeners import Listener
from hmb.broker.security.quotas.measuring import record_or_refuse
from hmb.broker.security.quotas.window import DEFAULT_SIZE, RateWindow, WindowSize
from hmb.protocol.enums import INT32_MAX
from hmb.security.ip_addresses import addresses_of
from hmb.storage.clock import monotonic_ms


class ListenerLimits(NamedTuple):
    """The limits of one listener: its number of connections, and its rate of new connections."""

    connections: int = INT32_MAX
    rate: int = INT32_MAX


NO_LIMITS = ListenerLimits()


class ConnectionLimits:
    """Counts the connections of each address and of each listener, and decides whether to accept new connections.

    The server holds a lock when it calls `reason_to_refuse`, `add` or `remove`, so these methods take no lock.
    """

    def __init__(
        self, listeners: Mapping[str, ListenerLimits] = MappingProxyType({}), size: WindowSize = DEFAULT_SIZE
    ) -> None:
        """Create the counters. `listeners` maps the name of a listener to its limits.

        A listener that is not in `listeners` has no limits. The rate of new connections is measured over a sliding time
        window of length `size`.
        """
        self._listeners = listeners
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._lock = threading.Lock()  # guards the windows; a thread that holds it takes no other lock
        self._all = RateWindow(size)
        self._windows: defaultdict[str, RateWindow] = defaultdict(lambda: RateWindow(size))  # key: name of a listener
        self._overrides: tuple[str, Mapping[str, int]] = ("", {})  # the text of the setting, and the limits in it

    def add(self, address: str, listener: str) -> None:
        self._by_address[address] += 1
        self._by_listener[listener] += 1

    def remove(self, address: str, listener: str) -> None:
        for counter, name in ((self._by_address, address), (self._by_listener, listener)):
            counter[name] -= 1
            if not counter[name]:
                del counter[name]

    def address_limit(self, address: str, config: LimitsConfig) -> int:
        """Return the largest number of connections that an address is allowed to have.

        The method sometimes looks up the addresses of host names, which can take long. The caller must hold no lock,
        because other threads would have to wait for it.
        """
        return self._overrides_in(config.max_connections_overrides).get(address, config.max_connections_per_ip)

    def reason_to_refuse(self, address: str, listener: str, address_limit: int) -> str | None:
        """Return why the server must refuse a new connection, or None if the server can accept it.

        The server refuses a connection if the listener has reached its limit of connections, or if the client's address
        already has `address_limit` connections.
        """
        if self._by_listener[listener] >= self._limits_of(listener).connections:
            return f"listener.name.{listener.lower()}.max.connections reached"
        return "max.connections.per.ip reached" if self._by_address[address] >= address_limit else None

    def delay_ms(self, listener: str, config: LimitsConfig) -> int:
        """Return the time (ms) that a new connection must wait, or 0.

        The result is greater than 0 if the rate of new connections is too high. After the returned time, the server
        must call the method again for the same connection.

        The method counts the connection only if the result is 0, so each connection counts once. Without a limit for
        the rate, the method counts nothing.
        """
        rates = [(self._all, config.max_connection_rate), (self._windows[listener], self._limits_of(listener).rate)]
        limited = [(window, rate) for window, rate in rates if rate < INT32_MAX]
        if not limited:
            return 0
        with self._lock:
            return record_or_refuse(limited, monotonic_ms())

    def _limits_of(self, listener: str) -> ListenerLimits:
        return self._listeners.get(listener, NO_LIMITS)

    def _overrides_in(self, text: str) -> Mapping[str, int]:
        """Return the limits in `max.connections.per.ip.overrides`, by address.

        The method stores its result, so it resolves the host names in `text` only once. If two listeners accept their
        first connections at the same time, both threads can resolve the names, and store the same result.
        """
        resolved, limits = self._overrides
        if resolved != text:
            pairs = (item.rpartition(":") for item in split_list(text))
            limits = {address: int(number) for host, _, number in pairs for address in addresses_of(host.strip("[]"))}
            self._overrides = (text, limits)
        return limits


def connection_limits(
    listeners: Iterable[Listener], properties: Mapping[str, str], size: WindowSize
) -> ConnectionLimits:
    """Return the limits of a broker with these settings and listeners. Raises ConfigError."""
    return ConnectionLimits({each.name: _listener_limits(each.name, properties) for each in listeners}, size)


def _listener_limits(listener: str, properties: Mapping[str, str]) -> ListenerLimits:
    """Return the limits of a listener from the settings with the prefix `listener.name.`. Raises ConfigError."""
    values = []
    for base in LISTENER_LIMITS:
        name = f"listener.name.{listener.lower()}.{base}"
        text = properties.get(name, str(INT32_MAX)).strip()
        if not text.isdecimal() or not 0 < int(text) <= INT32_MAX:
            raise ConfigError(f"the value must be a whole number from 1 to {INT32_MAX}", name, text)
        values.append(int(text))
    return ListenerLimits(*values)
