"""Shows the progress of a benchmark: one line on the terminal, which is updated at each step."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

from rich.console import Console


class Progress:
    """A line on the terminal that shows how many steps of a benchmark are done and how much time remains.

    If the standard error output is not a terminal, for example because it goes to a file, the class prints nothing.
    """

    def __init__(self, steps: int, stack: ExitStack) -> None:
        """Show the progress of a benchmark that has `steps` steps, until `stack` closes."""
        self._steps, self._begun = steps, 0
        self._started = time.monotonic()
        self._status = Console(stderr=True).status("") if sys.stderr.isatty() else None
        if self._status is not None:
            stack.enter_context(self._status)

    def step(self, name: str) -> None:
        """Show that the step `name` begins, and how much time the remaining steps will take."""
        if self._status is not None:
            left = ""
            if self._begun:
                seconds = (time.monotonic() - self._started) / self._begun * (self._steps - self._begun)
                left = f", about {seconds / 60:.0f} min left" if seconds >= 60 else ", less than a minute left"
            self._status.update(f"{self._begun + 1} of {self._steps}: {name}{left}")
        self._begun += 1
