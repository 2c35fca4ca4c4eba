"""When to stop starting crashed processors again.

A processor that crashes because of a bad moment (a broker that was away, a full socket) succeeds in a later epoch, and
the topology makes progress. A processor that crashes at the same record each time makes none. The measure of progress
is the complete clock: crashes count only since it last changed.
"""

from __future__ import annotations

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterState


class RestartLimit:
    """Counts restarts without progress. `problem` is an error as soon as there were more than `limit`."""

    def __init__(self, limit: int | None) -> None:
        self.problem: str | None = None
        self._limit = limit
        self._count = 0
        self._completed: Clock | None = None

    def note(self, master: MasterState | None, why: str) -> None:
        """Count a restart. `master` is the newest master state."""
        completed = master.completed if master is not None else None
        if completed != self._completed and self._completed is not None:
            self._count = 0
        self._completed = completed
        self._count += 1
        if self._limit is not None and self._count > self._limit:
            self.problem = f"{self._count} restarts without progress; the last because {why}"
