"""The option `--hmb-ui`: after a failed test, the broker stays open with its page until the user presses Enter.

A failed test leaves its records, groups and requests in the broker, but the next test would remove them. With
`--hmb-ui`, pytest stops before the fixtures of the failed test end. It prints the link to the broker's page:
    hmb: test_orders.py::test_order has failed; its broker is open at http://127.0.0.1:40321/?token=...
    hmb: press Enter to continue
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from hmb.defaults import DEFAULT_HOST
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from hmb.testing.embedded import Broker


def keep_open(broker: Broker, test: str, show: Callable[[str], None]) -> None:
    """Serve the page of a broker until a line arrives on standard input. `show` prints a line for the user."""
    if not broker.is_running:
        show(f"hmb: {test} has failed; its broker is stopped, so it has no page")
        return
    ports = MonitoringPorts(ui=HttpAddress(DEFAULT_HOST, 0))
    ports.start(broker._running)
    try:
        show(f"hmb: {test} has failed; its broker is open at {ports.urls['ui']}")
        show("hmb: press Enter to continue")
        sys.stdin.readline()
    finally:
        ports.stop()
