"""Limits warnings that could repeat for each batch of records."""

from __future__ import annotations

import time

INTERVAL = 10.0  # seconds between two warnings of one kind


class WarningInterval:
    """Limits the warnings of one kind: two warnings in a row are at least INTERVAL seconds apart."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_due(self) -> bool:
        """Return whether the caller should log its warning now."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + INTERVAL
        return True
