"""The limit of restarts: a runner ends a topology whose processors crash again and again.

Some crashes have a temporary cause, for example a broker that restarts. The crashed processor then succeeds in a later
epoch, and the topology makes progress. Other crashes repeat at the same record, and the topology makes no progress. A
topology makes progress when its newest complete clock changes. The runner therefore counts only the restarts after the
last change of this clock.
"""

from __future__ import annotations

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterState


class RestartLimit:
    """Counts the restarts of processors since the last complete snapshot. Too many restarts end the topology.

    When more than `limit` restarts are counted, `problem` becomes an error message. Until then, `problem` is None. If
    `limit` is None, the number of restarts is not limited.
    """

    def __init__(self, limit: int | None) -> None:
        self.problem: str | None = None
        self._limit = limit
        self._count = 0
        self._completed: Clock | None = None

    def note(self, master: MasterState | None, why: str) -> None:
        """Count a restart for the reason `why`. `master` is the newest master state."""
        completed = master.completed if master is not None else None
        # A negotiator that has just started knows no complete clock yet, so `completed` is None. The value None is no
        # progress, so the count continues.
        if completed is not None and completed != self._completed:
            self._completed, self._count = completed, 0
        self._count += 1
        if self._limit is not None and self._count > self._limit:
            self.problem = f"{self._count} restarts without progress; the last because {why}"
