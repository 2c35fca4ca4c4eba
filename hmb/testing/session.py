"""The embedded broker of a test session: every test begins with a running broker, without faults of earlier tests.

All tests of a session share one broker, because a new broker for each test would be slower. A test may stop this
broker, add faults or leave clients open. `Session` therefore repairs the broker before and after each test, and notes
which test has left which connection open.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from hmb.testing.embedded import Broker
from hmb.testing.fault_objects import AllFaults, described
from hmb.testing.report import LastLines, last_records, last_requests


class Session:
    """The embedded broker of a test session, the lines that it has logged, and its open connections."""

    def __init__(self, broker: Broker, log: LastLines) -> None:
        self.broker = broker
        self._log = log
        self._test = ""  # the id of the current test, or of the last one
        self._openers: dict[str, str] = {}  # address of a connected client -> the test that has not closed it

    def begin(self, test: str) -> None:
        """Prepare the broker for a test.

        Start the broker if it does not run, and remove the requests and log lines of earlier tests.
        """
        self._note_connections()
        self._test = test
        self._log.lines.clear()
        self.broker.forget_requests()
        self.restore()

    def restore(self) -> None:
        """Remove all faults. If the broker is stopped, or refuses writes after a failed sync, start it again."""
        self.broker.faults.clear()
        self.broker.disk.clear()
        if not self.broker.is_running or self.broker.refuses_writes:
            self.broker.restart()

    def left_open(self) -> Iterator[str]:
        """Yield a line for each test whose clients are still connected."""
        self._note_connections()
        for test, number in Counter(self._openers.values()).items():
            what = "1 connection" if number == 1 else f"{number} connections"
            yield f"{test or 'the session'} left {what} open; close each client (`with` does it)"

    def _note_connections(self) -> None:
        self._openers = {client: self._openers.get(client, self._test) for client in self.broker.connected_clients}

    def sections(self) -> Iterator[tuple[str, str]]:
        """Yield the title and the text of each section in the report of a failed test."""
        yield "hmb: log of the broker", "\n".join(self._log.lines)
        if faults := AllFaults(self.broker.faults, self.broker.disk).added:
            yield "hmb: active faults", "\n".join(json.dumps(described(fault)) for fault in faults)
        yield "hmb: last records", last_records(self.broker)
        if requests := last_requests(self.broker):
            yield "hmb: last requests", requests
