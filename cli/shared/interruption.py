"""Delay Ctrl-C until a step of a command has ended.

Ctrl-C can raise KeyboardInterrupt at any point of the main thread. For example, `hmb produce` queues many
records and counts them in one step. If Ctrl-C interrupted this step, some queued records would not be counted.
`uninterrupted` therefore remembers the Ctrl-C, and raises KeyboardInterrupt only when the step has ended.

A step can take very long, for example if the producer's buffer is full and the broker does not respond. So
`uninterrupted` delays Ctrl-C only for some seconds. After this time, it raises KeyboardInterrupt in the middle
of the step. If the user presses Ctrl-C a second time, it raises KeyboardInterrupt at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # the signals that end a command


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt in the `with` block, as Ctrl-C does. Only the main thread may call this."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def uninterrupted(limit: float) -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the `with` block ends, but at most `limit` seconds.

    Only the main thread may use this function.
    """
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
