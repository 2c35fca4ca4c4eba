"""The deadline of a start: a runner replaces the workers of processors that do not register for a new epoch in time.

The runner cannot distinguish a worker that hangs from a worker that starts slowly on a busy machine. With a fixed time
limit, the runner would replace a slow worker again and again, always before this worker can register. The topology
would never start. Each replacement therefore doubles the limit. For example, workers need 5 s to start, and the limit
is 1 s:
    at 0 s    the workers start           limit 1 s
    at 1 s    first replacement           limit 2 s
    at 3 s    second replacement          limit 4 s
    at 7 s    third replacement           limit 8 s
    at 12 s   all processors have registered
"""

from __future__ import annotations

from hmb.hailstorm.master import MasterPhase, MasterState

LONGEST_LIMIT = 60.0  # seconds; a doubled limit is at most this long, unless `start_timeout` is longer


class StartDeadline:
    """Decides when a runner has waited long enough for the processors that must register for a new epoch.

    limit   the time (s) for which the runner waits in the phase Initialize before it replaces workers

    The first limit is `start_timeout` (s). Each replacement doubles the limit. The longest limit is LONGEST_LIMIT, or
    `start_timeout` if that is longer. When the topology leaves Initialize, the limit becomes `start_timeout` again.
    """

    def __init__(self, start_timeout: float) -> None:
        self.limit = self._start_timeout = start_timeout
        self._epoch: int | None = None  # the epoch whose processors must register; None outside Initialize
        self._since = 0.0  # the time (s) at which this epoch or the last replacement began

    def has_passed(self, master: MasterState | None, now: float) -> bool:
        """Return whether the runner must now replace the workers that it waits for. If so, begin the next wait.

        `master` is the newest master state, and `now` is the time in seconds.
        """
        if master is None or master.phase is not MasterPhase.INITIALIZE:
            self._epoch, self.limit = None, self._start_timeout
            return False
        if master.epoch != self._epoch:
            self._epoch, self._since = master.epoch, now
            return False
        if now - self._since <= self.limit:
            return False
        self._since = now
        self.limit = min(2 * self.limit, max(LONGEST_LIMIT, self._start_timeout))
        return True
