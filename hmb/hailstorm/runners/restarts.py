"""Limits the restarts: a runner ends a topology whose processors crash again and again.

Some crashes have a temporary cause, for example a broker that restarts. Other crashes have a permanent cause: a
processor crashes at the same record after each restart. To end such a topology, the runner counts the restarts,
and allows only a limited number. When the topology completes a new snapshot, the count begins at 0 again. Each
snapshot has a *clock*, which contains one offset for each partition. The runner detects a new snapshot because
the clock of the newest complete snapshot has changed.

One crash can cause another crash. For example, processor A crashes, and the topology starts again. Processor B is
still saving a snapshot from before the restart. The store refuses this old snapshot, so B crashes, too.

If a topology crashes again and again, the runner ends it with an error message. The reason of the last crash could
mislead the user. The message therefore contains the most frequent reason of all restarts since the last complete
snapshot.
"""

from __future__ import annotations

from collections import Counter

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterState


class RestartLimit:
    """Counts the restarts of processors since the last complete snapshot, and reports too many restarts.

    The attribute `problem` is None until the count exceeds `limit`. Then `problem` contains an error
    message, and the runner ends the topology with this message. If `limit` is None, the number of restarts
    is not limited.
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
        # `completed` contains the offsets of the newest complete snapshot. New offsets mean progress, so the count of
        # restarts begins at 0 again. None shows no progress, because no complete snapshot is known.
        if completed is not None and completed != self._completed:
            self._completed = completed
            self._reasons.clear()
        self._reasons[why] += 1
        if self._limit is not None and self.count > self._limit:
            ((reason, _),) = self._reasons.most_common(1)
            self.problem = f"{self.count} restarts without progress, most often because {reason}"
