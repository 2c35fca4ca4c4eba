"""Limits the restarts: a runner ends a topology whose processors crash again and again.

Some crashes have a temporary cause, for example a broker that restarts. After a restart of the crashed processor, the
topology then makes progress. Other crashes repeat at the same record, so restarts do not help. To end such a topology,
the runner counts the restarts without progress, and allows only a limited number of them. A topology makes progress
when it completes a new snapshot. The runner notices this by the snapshot's clock: the offsets up to which the snapshot
includes the records. When this clock changes, the count begins again at 0.

The crash of one processor can make another processor crash. For example, the topology starts again after the first
crash. The other processor is still saving a snapshot of the time before this start, and crashes because the store
refuses the old snapshot. The last crash before the end of the topology can be such a consequence, and its reason would
mislead the user. The real cause repeats, so the error message contains the most frequent reason of all restarts.
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
        # If `completed` has changed, the topology has made progress: it has completed a new snapshot. The restarts
        # before this snapshot no longer count. If `completed` is None, the negotiator has just started and does not
        # know yet which snapshot is the newest. This is no progress.
        if completed is not None and completed != self._completed:
            self._completed = completed
            self._reasons.clear()
        self._reasons[why] += 1
        if self._limit is not None and self.count > self._limit:
            ((reason, _),) = self._reasons.most_common(1)
            self.problem = f"{self.count} restarts without progress, most often because {reason}"
