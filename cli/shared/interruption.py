"""Ctrl-C between two steps, and not in the middle of one.

Python raises KeyboardInterrupt wherever the main thread happens to be. While records are handed to a producer that
would leave some of them queued, and nobody who hears what became of them; so for that moment the signal is noted, and
raised at its end. A step that does not end within a bounded time (the producer's buffer is full and the broker silent)
is interrupted after all, and so it is by a second Ctrl-C.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted(patience: float) -> Iterator[None]:
    """Around a step that a signal interrupts at its end, or after so many seconds; only in the main thread."""
    noted: list[threading.Timer] = []

    def note(number: int, frame: FrameType | None) -> None:
        if noted:
            raise KeyboardInterrupt
        main = threading.main_thread().ident
        assert main is not None
        noted.append(threading.Timer(patience, signal.pthread_kill, (main, number)))
        noted[0].daemon = True
        noted[0].start()

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield
    finally:
        for timer in noted:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
    if noted:
        raise KeyboardInterrupt
