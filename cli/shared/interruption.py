"""Ctrl-C between two steps of a command.

Python raises KeyboardInterrupt at any point of the main thread. `hmb produce` queues many records in one step. An
interruption in the middle of the step would leave some records queued but not counted. The signal is therefore stored
during such a step, and KeyboardInterrupt is raised at the end of the step.

A step can take long, for example if the producer's buffer is full and the broker does not answer. Each step therefore
has a time limit, after which the signal interrupts it. A second Ctrl-C interrupts a step at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted(limit: float) -> Iterator[None]:
    """Delay SIGINT and SIGTERM to the end of a step, for `limit` seconds at most. Only for the main thread."""
    timers: list[threading.Timer] = []

    def store(number: int, frame: FrameType | None) -> None:
        if timers:
            raise KeyboardInterrupt
        main = threading.main_thread().ident
        assert main is not None
        timers.append(threading.Timer(limit, signal.pthread_kill, (main, number)))
        timers[0].daemon = True
        timers[0].start()

    before = {number: signal.signal(number, store) for number in SIGNALS}
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
    if timers:
        raise KeyboardInterrupt
