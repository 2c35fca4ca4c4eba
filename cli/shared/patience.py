"""Nobody should look at a still terminal and wonder: after three seconds, a line says what is being waited for."""

import threading
import time
from collections.abc import Callable
from typing import Self

import click

PATIENCE = 3.0  # seconds


class Patience:
    """Says on standard error what is being waited for, when nothing has moved for PATIENCE seconds; once each time.

    `progress` is a value that changes when something moves; None: nothing is being waited for.
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
        told: object = None  # where it stood when that was said last
        while not self._over.wait(PATIENCE / 4):
            now = self._progress()
            if now is None or now != before:
                before, since = now, time.monotonic()
            elif now != told and time.monotonic() - since >= PATIENCE:
                click.echo(f"waiting for {self._what()} ...", err=True)
                told = now


def patience_with(servers: str) -> Patience:
    """For a request and its answer."""
    return Patience(lambda: f"{servers} to answer", lambda: True)
