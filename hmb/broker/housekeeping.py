"""What a broker does without being asked: delete old segments, sync, write checkpoints, at fixed intervals."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from hmb.broker.context import Stop

LOGGER = logging.getLogger(__name__)


class Housekeeper:
    """One thread that runs tasks, each again and again after its interval (s), until the broker stops."""

    def __init__(self, stop: Stop, tasks: Sequence[tuple[float, Callable[[], None]]]) -> None:
        self._stop = stop
        self._tasks = [(interval, task, time.monotonic() + interval) for interval, task in tasks]
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, deadline: float) -> None:
        """After the stop was requested: let the task under way come to its end, if it does so in time."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            LOGGER.warning("housekeeping is still at work; not waiting for it")

    def _run(self) -> None:
        while True:
            interval, task, due = min(self._tasks, key=lambda entry: entry[2])
            if self._stop.requested.wait(min(max(0.0, due - time.monotonic()), threading.TIMEOUT_MAX)):
                return
            self._tasks.remove((interval, task, due))
            self._tasks.append((interval, task, time.monotonic() + interval))
            try:
                task()
            except Exception:  # the next run may do better, and the broker serves on
                LOGGER.exception("%s failed", getattr(task, "__qualname__", task))
