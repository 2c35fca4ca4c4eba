"""Stores refused logins as events. Slows down a client that guesses passwords on the broker's page in a browser.

The broker keeps a list of its last events, such as deletions of old segments and refused logins. A client that
guesses passwords could fill this list, so that no other events are left in it. The list therefore gets at most
MAX_EVENTS refused logins within a minute. The broker's log contains all refused logins.

After a refused login, a listener with SASL waits 0.1 s, sends its response, and closes the connection. Each wrong
password therefore costs a client 0.1 s and a new connection.

The HTTP server of the broker's page (`hmb broker --ui`) does not wait after a refused login. Instead, before it checks
a password, it calls `is_blocked`. If the client's host has sent too many wrong passwords, the HTTP server refuses the
request without checking the password.

If the broker refuses 5 logins (MAX_REFUSED_LOGINS) from a host within a minute, `is_blocked` returns True for
the host. One minute after the first of these refusals, the host can try another password.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from hmb.storage.events import EventKind, EventLog

LOGGER = logging.getLogger(__name__)
MINUTE = 60.0  # seconds
MAX_EVENTS = 20
MAX_REFUSED_LOGINS = 5
MAX_HOSTS = 1000  # the number of hosts whose refused logins are kept


class RefusedLogins:
    """The refused logins of the last minute. Thread-safe."""

    def __init__(self, events: EventLog, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without any refused logins. `clock` returns seconds."""
        self._events = events
        self._clock = clock
        self._lock = threading.Lock()  # guards the two fields below; a thread that holds it takes no other lock
        self._noted: deque[float] = deque(maxlen=MAX_EVENTS)  # the times of the last events
        self._by_host: dict[str, deque[float]] = {}  # host -> times of refused logins; the newest host is at the end

    def add(self, host: str, text: str) -> None:
        """Log a refused login of a client on `host`, and usually add it to the broker's list of events.

        If the list already contains MAX_EVENTS refused logins of the last minute, the refused login is only logged.
        """
        now = self._clock()
        text = f"{text}, client on {host}"
        with self._lock:
            times = self._by_host.pop(host, None) or deque(maxlen=MAX_REFUSED_LOGINS)
            times.append(now)
            self._by_host[host] = times
            if len(self._by_host) > MAX_HOSTS:
                del self._by_host[next(iter(self._by_host))]
            is_noted = len(self._noted) < MAX_EVENTS or now - self._noted[0] >= MINUTE
            if is_noted:
                self._noted.append(now)
        if is_noted:
            self._events.add(EventKind.LOGIN, text, LOGGER, logging.WARNING)
        else:
            LOGGER.warning("%s", text)

    def is_blocked(self, host: str) -> bool:
        """Return whether clients on `host` must wait before they may try another password."""
        with self._lock:
            times = self._by_host.get(host)
            return times is not None and len(times) == MAX_REFUSED_LOGINS and self._clock() - times[0] < MINUTE
