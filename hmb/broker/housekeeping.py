"""Runs the periodic tasks of a broker, such as the deletion of old segments, the sync of logs, and compaction.

A housekeeper is a thread that runs periodic tasks. It waits in real time between two runs of a task, and does not use
the broker's clock. A test that moves the broker's clock forward therefore starts no task. Such a test must call `run`
itself.
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
# A client can change a task's interval while the housekeeper thread waits. The thread therefore waits at most this
# number of seconds, and then reads all intervals again.
CONFIG_CHECK_INTERVAL = 1.0


class Housekeeper:
    """One thread that runs several tasks periodically until the broker stops. Each task has its own interval (in s)."""

    def __init__(self, stop: Stop, tasks: Sequence[tuple[Callable[[], float], Task]]) -> None:
        self._stop = stop
        self.tasks = tasks
        self._runs = [(interval, task, time.monotonic()) for interval, task in tasks]  # time of the last run
        self.lock = threading.Lock()  # held while a task runs
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, deadline: float) -> None:
        """Wait until the thread has ended or `deadline` has passed.

        The caller must first request the stop of the broker.
        """
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            LOGGER.warning("the broker stops while a periodic task is still running")

    def run(self, task: Task) -> None:
        """Run a task in the calling thread.

        If another task is running, first wait until that task has ended. If `task` fails, log the error.
        """
        with self.lock:
            if self._stop.requested.is_set():
                return
            name = getattr(task, "__qualname__", task)
            try:
                task()
            except (KafkaError, OSError) as error:  # For example, the disk is full. A later run may succeed.
                LOGGER.error("%s failed: %s", name, error)
            except Exception:  # An internal error of one task must not stop the other tasks.
                LOGGER.exception("%s failed", name)

    def _run(self) -> None:
        while True:
            interval, task, last = min(self._runs, key=lambda entry: entry[0]() + entry[2])
            remaining = last + interval() - time.monotonic()
            if self._stop.requested.wait(min(max(0.0, remaining), CONFIG_CHECK_INTERVAL)):
                return
            if remaining > CONFIG_CHECK_INTERVAL:
                continue
            self._runs.remove((interval, task, last))
            self._runs.append((interval, task, time.monotonic()))
            self.run(task)
