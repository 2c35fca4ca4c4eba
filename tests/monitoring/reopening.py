"""Opens the HTTP ports of a broker again at the same addresses, as a restart does."""

from __future__ import annotations

import time

from hmb.monitoring.ports import HttpAddress, MonitoringPorts

PATIENCE = 30.0  # seconds


def opened_again(*, state: HttpAddress | None = None, ui: HttpAddress | None = None) -> MonitoringPorts:
    """Open the ports again. Try repeatedly, because the kernel may keep the old ports for a moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return MonitoringPorts(state=state, ui=ui)
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
