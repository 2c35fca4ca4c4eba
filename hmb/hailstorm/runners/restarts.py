"""Limits the restarts: a runner ends a topology whose processors crash again and again.

Some crashes have a temporary cause, for example a broker that restarts. The crashed processor then succeeds in a later
epoch, and the topology makes progress. Other crashes repeat at the same record, and the topology makes no progress. A
topology makes progress when it completes a new snapshot: the clock (the offsets) of its newest complete snapshot then
changes. The runner therefore counts only the restarts after the last change of this clock.

The crash of one processor can make another processor crash, for example because the snapshot of the other processor
belongs to an epoch that has ended. The error message therefore contains the most frequent reason of the restarts, not
the last one.
"""

from __future__ import annotations

from collections import Counter

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
        self._reasons: Counter[str] = Counter()  # reason -> number of restarts
        self._completed: Clock | None = None

    @property
    def count(self) -> int:
        """The number of restarts since the last complete snapshot."""
        return self._reasons.total()

    def note(self, master: MasterState | None, why: str) -> None:
        """Count a restart for the reason `why`. `master` is the newest master state."""
        completed = master.completed if master is not None else None
        # If `completed` has changed, the topology has completed a new snapshot. This is progress, so the count of
        # restarts begins again at 0. The value None is not progress: a negotiator that has just started does not know
        # the newest complete snapshot yet.
        if completed is not None and completed != self._completed:
            self._completed = completed
            self._reasons.clear()
        self._reasons[why] += 1
        if self._limit is not None and self.count > self._limit:
            ((reason, _),) = self._reasons.most_common(1)
            self.problem = f"{self.count} restarts without progress, most often because {reason}"
