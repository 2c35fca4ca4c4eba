"""How far a benchmark is: one line that changes, on a terminal only."""

from __future__ import annotations

import sys
import time

from rich.console import Console


class Progress:
    """Steps of about the same length."""

    def __init__(self, steps: int) -> None:
        self._steps, self._done = steps, 0
        self._started = time.monotonic()
        self._status = Console(stderr=True).status("") if sys.stderr.isatty() else None
        if self._status is not None:
            self._status.start()

    def step(self, what: str) -> None:
        """The next one begins."""
        if self._status is not None:
            left = ""
            if self._done:
                seconds = (time.monotonic() - self._started) / self._done * (self._steps - self._done)
                left = f", some {seconds / 60:.0f} min left" if seconds >= 60 else ", less than a minute left"
            self._status.update(f"{self._done + 1} of {self._steps}: {what}{left}")
        self._done += 1

    def end(self) -> None:
        if self._status is not None:
            self._status.stop()
