"""Periodic work of a broker: delete old segments, sync logs, write checkpoints.

The intervals of the tasks run in real time. A test that moves the broker's clock runs the tasks itself, with `run`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from hmb.broker.context import Stop
from hmb.protocol.errors import KafkaError

LOGGER = logging.getLogger(__name__)
Task = Callable[[], None]


LOOK_AGAIN = 1.0  # seconds between two looks at the intervals, which may have become shorter


class Housekeeper:
    """One thread that runs tasks periodically, each with its interval (s), until the broker stops."""

    def __init__(self, stop: Stop, tasks: Sequence[tuple[Callable[[], float], Task]]) -> None:
        self._stop = stop
        self.tasks = tasks
        self._runs = [(interval, task, time.monotonic()) for interval, task in tasks]  # with the time of the last run
        self.lock = threading.Lock()  # held while a task runs
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, deadline: float) -> None:
        """Wait for the end of the current task, at most until the deadline. The caller has requested the stop."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            LOGGER.warning("the stop does not wait for the housekeeper, whose task is still running")

    def run(self, task: Task) -> None:
        """Run a task in the calling thread, after the end of the task that runs now. Log the errors of the task."""
        with self.lock:
            if self._stop.requested.is_set():
                return
            name = getattr(task, "__qualname__", task)
            try:
                task()
            except (KafkaError, OSError) as error:  # For example, the disk is full. The next run may succeed.
                LOGGER.error("%s failed: %s", name, error)
            except Exception:  # After an internal error the broker continues to serve.
                LOGGER.exception("%s failed", name)

    def _run(self) -> None:
        while True:
            interval, task, last = min(self._runs, key=lambda entry: entry[0]() + entry[2])
            remaining = last + interval() - time.monotonic()
            if self._stop.requested.wait(min(max(0.0, remaining), LOOK_AGAIN)):
                return
            if remaining > LOOK_AGAIN:
                continue
            self._runs.remove((interval, task, last))
            self._runs.append((interval, task, time.monotonic()))
            self.run(task)
