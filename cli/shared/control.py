"""Lets a test control a broker through a port, and stops the broker when the test's process ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import USAGE, CliError

if TYPE_CHECKING:
    from hmb.broker.dispatch import Handler
    from hmb.protocol.api_keys import ApiKey
    from hmb.testing.faults.control import ControlPort

WATCH_SECONDS = 0.1  # seconds between two checks whether the parent process still runs


@contextmanager
def control_port(handlers: dict[ApiKey, Handler], path: str | None) -> Iterator[ControlPort]:
    """Open a control port while the `with` block runs. A test uses this port to add faults to a running broker.

    A fault is, for example, an error that the broker returns to a client on purpose. `handlers` are the broker's
    request handlers, which the faults change. If `path` is not None, the faults in this file are active from the
    start. Raises CliError if the file contains a mistake, and OSError if the file cannot be read.
    """
    from hmb.testing.clock import ManualClock
    from hmb.testing.disk import DiskFaults
    from hmb.testing.errors import FaultError
    from hmb.testing.faults.control import ControlPort
    from hmb.testing.faults.handler_layers import HandlerLayers
    from hmb.testing.faults.objects import AllFaults, load_faults
    from hmb.testing.faults.requests import Faults
    from hmb.testing.request_record import RequestRecord

    layers = HandlerLayers(handlers)
    faults = AllFaults(Faults(layers), DiskFaults())
    if path is not None:
        try:
            load_faults(faults, Path(path))
        except FaultError as error:
            raise CliError(str(error), USAGE) from error
    control = ControlPort(faults, RequestRecord(layers), ManualClock())
    control.start()
    try:
        yield control
    finally:
        control.stop()


def end_with_parent() -> None:
    """Send SIGTERM to this process when its parent process ends.

    This process is a broker, and its parent is a test that has started it. If the test crashes, it cannot stop the
    broker. So a thread of the broker checks again and again whether the broker still has the same parent. When a
    parent process ends, the kernel assigns another parent to the broker, and the thread then sends SIGTERM.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watcher", daemon=True).start()
