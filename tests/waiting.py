"""Waiting for what other threads or processes do."""

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
    """Come back as soon as the condition holds, and fail when it does not within `seconds`; `what` names it then."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(pause)
