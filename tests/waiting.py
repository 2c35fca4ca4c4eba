"""A function that waits for the work of other threads or processes."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(
    condition: Callable[[], object],
    what: str = "what the test waits for",
    *,
    seconds: float = 60.0,
    pause: float = 0.001,
) -> None:
    """Wait until the condition is true. Fail after `seconds`, with `what` in the message."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(pause)
