"""A line on standard error when a broker does not answer.

A command that waits for a broker prints nothing, and its user cannot see whether it works or hangs. After three seconds
without progress, `Patience` prints what the command waits for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

import click

PATIENCE = 3.0  # seconds


class Patience:
    """A thread that prints a line if the command has made no progress for PATIENCE seconds, once for each such pause.

    `progress` returns a value that changes with each step, or None while the command does not wait for anything.
    `what` returns the end of the line "waiting for ...".
    """

    def __init__(self, what: Callable[[], str], progress: Callable[[], object]) -> None:
        self._what, self._progress = what, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hmb-patience", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        before, since = self._progress(), time.monotonic()
        printed: object = None  # the progress at the time of the last printed line
        while not self._over.wait(PATIENCE / 4):
            now = self._progress()
            if now is None or now != before:
                before, since = now, time.monotonic()
            elif now != printed and time.monotonic() - since >= PATIENCE:
                click.echo(f"waiting for {self._what()} ...", err=True)
                printed = now


def patience_with(servers: str) -> Patience:
    """Return the `Patience` for a request to these servers and its response."""
    return Patience(lambda: f"{servers} to answer", lambda: True)
