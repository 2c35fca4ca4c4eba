"""Ends `hmb consume` if no record has arrived for --timeout-ms milliseconds, or if nobody reads the output any more."""

from __future__ import annotations

import time

from ..shared.streams import reader_has_left

POLL_TIMEOUT = 1.0  # seconds


class IdleLimit:
    """Decides when a command ends because no record has arrived for a certain time."""

    def __init__(self, timeout_ms: int | None) -> None:
        """Store the limit in ms, or None if the command may wait without a limit."""
        self._limit = None if timeout_ms is None else timeout_ms / 1000
        self._last = time.monotonic()  # when records arrived last
        self.poll_timeout = POLL_TIMEOUT if self._limit is None else min(POLL_TIMEOUT, self._limit)  # seconds

    def is_over(self, *, has_records: bool) -> bool:
        """Return whether the command must end, because no record has arrived within the time limit.

        The command calls this method after each poll. `has_records` is True if the poll has returned records. If the
        poll has returned no records and nobody reads the output any more, the method raises BrokenPipeError.
        """
        if has_records:
            self._last = time.monotonic()
            return False
        if reader_has_left():
            raise BrokenPipeError
        return self._limit is not None and time.monotonic() - self._last >= self._limit
