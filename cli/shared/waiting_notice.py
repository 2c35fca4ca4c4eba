"""Print a line on standard error when a broker does not respond.

While a command waits for a broker, it prints nothing. Its user cannot see whether the command works or hangs. If the
command makes no progress for three seconds, `WaitingNotice` prints what the command is waiting for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

import click

NOTICE_SECONDS = 3.0  # seconds


class WaitingNotice:
    """A thread that prints a line if the command makes no progress for NOTICE_SECONDS seconds.

    The function `what` returns what the command waits for, such as "localhost:9092 to answer". The function
    `progress` returns a value that changes whenever the command makes progress, or None if the command is not
    waiting.

    If the result of `progress` stays the same for NOTICE_SECONDS seconds, the thread prints one line, such as
    "waiting for localhost:9092 to answer ...". It does not print this line again until the result changes.
    """

    def __init__(self, what: Callable[[], str], progress: Callable[[], object]) -> None:
        self._what, self._progress = what, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hmb-notice", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()  # The thread ends, because `_over` is set.

    def _watch(self) -> None:
        before, since = self._progress(), time.monotonic()
        printed: object = None  # the value of `progress` when the thread printed its last line
        while not self._over.wait(NOTICE_SECONDS / 4):
            now = self._progress()
            if now is None or now != before:
                before, since = now, time.monotonic()
            elif now != printed and time.monotonic() - since >= NOTICE_SECONDS:
                click.echo(f"waiting for {self._what()} ...", err=True)
                printed = now


def notice_about(servers: str) -> WaitingNotice:
    """Return the `WaitingNotice` for a command that sends requests to these servers and waits for their responses."""
    return WaitingNotice(lambda: f"{servers} to answer", lambda: True)
