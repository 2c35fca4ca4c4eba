"""Code for `hmb broker --faults` and `--embedded`: open a control port, and stop when the parent process ends."""

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
    """Open a control port while the `with` block runs. Through this port, a test adds faults to a broker's `handlers`.

    If `path` is not None, the faults in this file are active from the start. Raises CliError for a mistake in the file,
    and OSError if the file cannot be read.
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

    This process is a broker, and its parent process is a test that has started the broker. If the test crashes, it does
    not stop the broker. But the kernel then assigns another parent to the broker's process. A thread of the broker
    therefore checks again and again whether the parent has changed.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watcher", daemon=True).start()
